#include "engine/io/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unprivileged.h"

namespace encoderd {
namespace {

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kNotFound = absl::StatusCode::kNotFound;

TEST(FileTest, ReadsBytesByPosition) {
  const TempFolder folder;
  folder.Write("a", "0123456789");
  const absl::StatusOr<File> file = File::Open(folder.path(), "a", 100);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->size(), 10);
  char bytes[4] = {};
  ASSERT_THAT(file->ReadAt(3, bytes, 4), IsOk());
  EXPECT_EQ(std::string(bytes, 4), "3456");
}

TEST(FileTest, MovesItsDescriptor) {
  const TempFolder folder;
  folder.Write("a", "a");
  folder.Write("b", "bb");
  absl::StatusOr<File> a = File::Open(folder.path(), "a", 100);
  absl::StatusOr<File> b = File::Open(folder.path(), "b", 100);
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  *a = *std::move(b);
  const File c = *std::move(a);
  char bytes[2] = {};
  ASSERT_THAT(c.ReadAt(0, bytes, 2), IsOk());
  EXPECT_EQ(std::string(bytes, 2), "bb");
}

TEST(FileTest, ReadsFilesInSubfolders) {
  const TempFolder folder;
  folder.Write("1_Pooling/config.json", "{}");
  EXPECT_EQ(ReadWholeFile(folder.path(), "1_Pooling/config.json", 10).value(),
            "{}");
}

TEST(FileTest, RefusesAFileThatIsNotThere) {
  const TempFolder folder;
  EXPECT_THAT(File::Open(folder.path(), "a", 100),
              IsError(kNotFound, "no file 'a'"));
  EXPECT_THAT(File::Open(folder.Path("none"), "a", 100),
              IsError(kNotFound, "no folder"));
}

TEST(FileTest, NamesWhatALinkMisses) {
  const TempFolder folder;
  std::filesystem::create_symlink("gone", folder.Path("a"));
  EXPECT_THAT(File::Open(folder.path(), "a", 1 << 20),
              IsError(kNotFound,
                      "no file 'a'; it is a link to 'gone', which does not "
                      "exist"));
}

TEST(FileTest, RefusesAPointerOfGitLfs) {
  const TempFolder folder;
  folder.Write("weights",
               "version https://git-lfs.github.com/spec/v1\n"
               "oid sha256:0123456789abcdef\nsize 90868376\n");
  EXPECT_THAT(File::Open(folder.path(), "weights", 1000),
              IsError(kDataLoss,
                      "file 'weights' is a Git LFS pointer, not the file "
                      "itself: run git lfs pull in its folder"));
}

TEST(FileTest, RefusesNamesThatLeadOut) {
  const TempFolder folder;
  folder.Write("in/a", "a");
  folder.Write("secret", "s");
  const std::string in = folder.Path("in");
  for (const char* name :
       {"../secret", "x/../../secret", "..", "/etc/passwd", ""}) {
    EXPECT_THAT(File::Open(in, name, 100),
                IsError(kDataLoss, "not a name inside its folder"))
        << name;
    EXPECT_THAT(FileExists(in, name),
                IsError(kDataLoss, "not a name inside its folder"))
        << name;
  }
  const absl::string_view cut("a\0b", 3);
  EXPECT_THAT(File::Open(in, cut, 100),
              IsError(kDataLoss, "not a name inside its folder"));
  EXPECT_THAT(FileExists(in, cut),
              IsError(kDataLoss, "not a name inside its folder"));
}

TEST(FileTest, RefusesASymbolicLinkThatLeadsOut) {
  const TempFolder folder;
  folder.Write("in/a", "a");
  folder.Write("secret", "s");
  folder.Write("in-too/b", "b");
  std::filesystem::create_symlink("../secret", folder.Path("in/link"));
  std::filesystem::create_symlink(folder.Path("in-too"),
                                  folder.Path("in/folder"));
  std::filesystem::create_symlink("/etc/passwd", folder.Path("in/passwd"));
  for (const char* name : {"link", "folder/b", "passwd"}) {
    EXPECT_THAT(File::Open(folder.Path("in"), name, 1 << 20),
                IsError(kDataLoss, "leads out of its folder"))
        << name;
  }
}

TEST(FileTest, FollowsALinkThatStaysInside) {
  const TempFolder folder;
  folder.Write("real/a", "a");
  std::filesystem::create_symlink("real/a", folder.Path("link"));
  EXPECT_THAT(File::Open(folder.path(), "link", 100), IsOk());
}

TEST(FileTest, LinksOfASubfolderMayLeadToAnyPlaceInTheFolder) {
  const TempFolder folder;
  folder.Write("model/a", "a");
  folder.Write("model/sub/own", "own");
  folder.Write("model-too/b", "b");
  folder.Write("secret", "s");
  const Folder sub(folder.Path("model"), "sub");
  std::filesystem::create_symlink("../a", sub.Full() + "/up");
  std::filesystem::create_symlink("../../secret", sub.Full() + "/out");
  std::filesystem::create_symlink("../../model-too", sub.Full() + "/folder");
  EXPECT_EQ(ReadWholeFile(sub, "own", 100).value(), "own");
  EXPECT_EQ(ReadWholeFile(sub, "up", 100).value(), "a");
  EXPECT_TRUE(FileExists(sub, "up").value());
  EXPECT_FALSE(FileExists(sub, "a").value());
  for (const char* name : {"out", "folder/b"}) {
    EXPECT_THAT(File::Open(sub, name, 100),
                IsError(kDataLoss, "leads out of its folder"))
        << name;
  }
  // Opened by itself, the subfolder is the limit.
  EXPECT_THAT(File::Open(sub.Full(), "up", 100),
              IsError(kDataLoss, "leads out of its folder"));
}

TEST(FileTest, RefusesASubfolderThatLeadsOut) {
  const TempFolder folder;
  folder.Write("model/a", "a");
  folder.Write("other/b", "b");
  const std::string model = folder.Path("model");
  std::filesystem::create_symlink("../other", model + "/link");
  EXPECT_THAT(File::Open({model, "link"}, "b", 100),
              IsError(kDataLoss, "leads out of its folder"));
  for (const std::string& sub : {std::string("../other"), folder.Path("other"),
                                 std::string("x/../../other")}) {
    EXPECT_THAT(File::Open({model, sub}, "b", 100),
                IsError(kDataLoss, "not a name inside its folder"))
        << sub;
  }
}

TEST(FileTest, OpensAModelInTheLayoutOfTheHuggingFaceCache) {
  const TempFolder folder;
  folder.Write("models--X/blobs/123", "weights");
  folder.Write("models--X/refs/main", "secret");
  folder.Write("models--X/snapshots/rev/own", "own");
  const std::string snapshot = folder.Path("models--X/snapshots/rev");
  std::filesystem::create_symlink("../../blobs/123", snapshot + "/model");
  std::filesystem::create_symlink("../../refs/main", snapshot + "/out");
  EXPECT_THAT(File::Open(snapshot, "model", 100), IsOk());
  EXPECT_THAT(File::Open(snapshot, "own", 100), IsOk());
  EXPECT_THAT(File::Open(snapshot, "out", 100),
              IsError(kDataLoss, "leads out of its folder"));
  // A folder of an older sentence-transformers layout, opened by itself.
  const std::string inner = snapshot + "/0_Transformer";
  std::filesystem::create_directory(inner);
  std::filesystem::create_symlink("../../../blobs/123", inner + "/model");
  std::filesystem::create_symlink("../../../refs/main", inner + "/out");
  EXPECT_THAT(File::Open(snapshot, "0_Transformer/model", 100), IsOk());
  EXPECT_THAT(File::Open({snapshot, "0_Transformer"}, "model", 100), IsOk());
  EXPECT_THAT(File::Open({snapshot, "0_Transformer"}, "out", 100),
              IsError(kDataLoss, "leads out of its folder"));
  EXPECT_THAT(File::Open(inner, "model", 100), IsOk());
  EXPECT_THAT(File::Open(inner, "out", 100),
              IsError(kDataLoss, "leads out of its folder"));
}

TEST(FileTest, TakesNoOtherFolderForThatCache) {
  const TempFolder folder;
  folder.Write("blobs/123", "secret");
  folder.Write("snapshots/model/own", "own");
  const std::string model = folder.Path("snapshots/model");
  std::filesystem::create_symlink("../../blobs/123", model + "/out");
  EXPECT_THAT(File::Open(model, "own", 100), IsOk());
  EXPECT_THAT(File::Open(model, "out", 100),
              IsError(kDataLoss, "leads out of its folder"));
}

TEST(FileTest, RefusesAFifoWithoutWaitingForAWriter) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo(folder.Path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(File::Open(folder.path(), "fifo", 100),
              IsError(kDataLoss, "'fifo' is not a regular file"));
}

TEST(FileTest, RefusesAFolder) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.Path("sub"));
  EXPECT_THAT(File::Open(folder.path(), "sub", 100),
              IsError(kDataLoss, "'sub' is not a regular file"));
}

TEST(FileTest, RefusesAnEmptyFile) {
  const TempFolder folder;
  folder.Write("a", "");
  EXPECT_THAT(File::Open(folder.path(), "a", 100),
              IsError(kDataLoss, "'a' is empty"));
}

TEST(FileTest, RefusesAFileOverItsLimit) {
  const TempFolder folder;
  folder.Write("a", "12345");
  EXPECT_THAT(File::Open(folder.path(), "a", 5), IsOk());
  EXPECT_THAT(File::Open(folder.path(), "a", 4),
              IsError(kDataLoss, "has 5 bytes; at most 4"));
}

TEST(FileTest, AFileCutWhileItIsReadIsAnErrorAndNoSignal) {
  const TempFolder folder;
  folder.Write("a", std::string(1 << 20, 'x'));
  const absl::StatusOr<File> file = File::Open(folder.path(), "a", 1 << 20);
  ASSERT_THAT(file, IsOk());
  ASSERT_EQ(::truncate(folder.Path("a").c_str(), 1000), 0);
  std::string bytes(1 << 20, '\0');
  EXPECT_THAT(file->ReadAt(0, bytes.data(), 1 << 20),
              IsError(kDataLoss, "ends at byte 1000"));
}

TEST(FileTest, WhatThisUserMayNotReadIsToldFromWhatIsMissing) {
  const TempFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  folder.Write("open/a", "a");
  folder.Write("closed/a", "a");
  ASSERT_EQ(::chmod(folder.Path("open/a").c_str(), 0), 0);
  ASSERT_EQ(::chmod(folder.Path("closed").c_str(), 0), 0);
  {
    const Unprivileged user;
    for (const char* name : {"open", "closed"}) {
      const auto denied =
          IsError(absl::StatusCode::kPermissionDenied,
                  absl::StrCat("file 'a' cannot be read by user ", ::geteuid(),
                               ": Permission denied; give that user access: "
                               "run `setfacl -R -m u:",
                               ::geteuid(), ":rX ", folder.Path(name), "`"));
      EXPECT_THAT(File::Open(folder.Path(name), "a", 100), denied);
      if (name == absl::string_view("closed")) {
        EXPECT_THAT(FileExists(folder.Path(name), "a"), denied);
      }
    }
    EXPECT_TRUE(FileExists(folder.Path("open"), "a").value());
    EXPECT_THAT(File::Open(folder.Path("open"), "b", 100),
                IsError(kNotFound, "no file 'b'"));
    EXPECT_FALSE(FileExists(folder.Path("open"), "b").value());
    EXPECT_THAT(File::Open(folder.Path("closed/in"), "a", 100),
                IsError(absl::StatusCode::kPermissionDenied, "folder '"));
  }
  ASSERT_EQ(::chmod(folder.Path("closed").c_str(), 0755), 0);
}

TEST(FileTest, ADiskOrFileSystemThatDoesNotAnswerMayAnswerLater) {
  for (const int error : {EIO, ESTALE, ETIMEDOUT, ENODEV, ENOTCONN, EREMOTEIO,
                          EHOSTDOWN, EHOSTUNREACH, ECONNABORTED, ECONNREFUSED,
                          ECONNRESET, ENETDOWN, ENETUNREACH, EAGAIN}) {
    EXPECT_TRUE(FileErrorMayPass(error)) << std::strerror(error);
    EXPECT_THAT(
        FileError(error, "file 'a' cannot be opened"),
        IsError(absl::StatusCode::kUnavailable, "file 'a' cannot be opened"));
  }
  EXPECT_THAT(FolderError("/mnt/a", ESTALE),
              IsError(absl::StatusCode::kUnavailable,
                      "folder '/mnt/a' cannot be read: Stale file handle"));
}

TEST(FileTest, MemoryAndDescriptorsThatLackAreNotTheFilesFault) {
  for (const int error : {ENOMEM, EMFILE, ENFILE}) {
    EXPECT_FALSE(FileErrorMayPass(error)) << std::strerror(error);
    EXPECT_THAT(FileError(error, "m"),
                IsError(absl::StatusCode::kResourceExhausted, "m"));
    EXPECT_THAT(FolderError("/mnt/a", error),
                IsError(absl::StatusCode::kResourceExhausted,
                        "folder '/mnt/a' cannot be read: "));
  }
  EXPECT_THAT(FolderError("/mnt/a", EACCES),
              IsError(absl::StatusCode::kPermissionDenied,
                      "folder '/mnt/a' cannot be read by user "));
  EXPECT_THAT(FolderError("/mnt/a", ENOENT),
              IsError(absl::StatusCode::kNotFound,
                      "no folder '/mnt/a': No such file or directory"));
}

TEST(FileTest, WhatIsWrongWithAFileItselfDoesNotPass) {
  for (const int error :
       {0, EACCES, ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG, EINVAL, ENXIO}) {
    EXPECT_FALSE(FileErrorMayPass(error)) << std::strerror(error);
    EXPECT_THAT(FileError(error, "m"), IsError(kDataLoss, "m"));
  }
}

TEST(FileTest, QuotesControlCharactersAndCutsLongNames) {
  EXPECT_EQ(Quote("a\nb"), "'a\\nb'");
  EXPECT_EQ(Quote(std::string(81, 'x')), "'" + std::string(80, 'x') + "...'");
}

}  // namespace
}  // namespace encoderd
