#include "engine/io/manifest.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unprivileged.h"

namespace encoderd {
namespace {

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

// Of "abc" (FIPS 180-2, appendix B.1).
constexpr char kAbc[] =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(ManifestTest, AFolderWithoutOneIsAsItIs) {
  const TempFolder folder;
  const absl::StatusOr<int64_t> checked = CheckManifest(folder.path());
  ASSERT_THAT(checked, IsOk());
  EXPECT_EQ(*checked, 0);
}

TEST(ManifestTest, CountsTheFilesThatAreAsItSays) {
  const TempFolder folder;
  folder.Write("model.safetensors", "abc");
  folder.Write("1_Pooling/config.json", "abc");
  folder.Write("SHA256SUMS", std::string(kAbc) + "  model.safetensors\n\n" +
                                 kAbc + " *1_Pooling/config.json\r\n");
  const absl::StatusOr<int64_t> checked = CheckManifest(folder.path());
  ASSERT_THAT(checked, IsOk());
  EXPECT_EQ(*checked, 2);
}

TEST(ManifestTest, NamesTheFileThatDiffersWithBothDigests) {
  const TempFolder folder;
  folder.Write("a", "abc");
  folder.Write("b", "abd");
  folder.Write("SHA256SUMS", std::string(kAbc) + "  a\n" + kAbc + "  b\n");
  const absl::Status status = CheckManifest(folder.path()).status();
  EXPECT_THAT(status, IsError(kDataLoss, "line 2"));
  EXPECT_THAT(status, IsError(kDataLoss, "'b'"));
  EXPECT_THAT(status, IsError(kDataLoss, kAbc));
}

TEST(ManifestTest, RefusesAFileThatIsNotThereOrLiesOutside) {
  const TempFolder folder;
  folder.Write("SHA256SUMS", std::string(kAbc) + "  gone\n");
  EXPECT_THAT(CheckManifest(folder.path()).status(),
              IsError(kDataLoss, "no file 'gone'"));
  folder.Write("SHA256SUMS", std::string(kAbc) + "  ../../etc/passwd\n");
  EXPECT_THAT(CheckManifest(folder.path()).status(),
              IsError(kDataLoss, "line 1"));
}

TEST(ManifestTest, RefusesAFileThatItDoesNotList) {
  for (const char* name :
       {"config_sentence_transformers.json", "1_Pooling/config.json",
        "vocab.txt", "model-00002-of-00002.safetensors", "x/y/z/config.json"}) {
    const TempFolder folder;
    folder.Write("a", "abc");
    folder.Write(name, "abc");
    folder.Write("SHA256SUMS", std::string(kAbc) + "  a\n");
    EXPECT_THAT(
        CheckManifest(folder.path()).status(),
        IsError(kDataLoss, std::string("does not list '") + name + "'"));
    folder.Write("SHA256SUMS",
                 std::string(kAbc) + "  ./a\n" + kAbc + "  ./" + name + "\n");
    EXPECT_THAT(CheckManifest(folder.path()), IsOk()) << name;
  }
}

TEST(ManifestTest, LeavesAloneWhatIsNeverRead) {
  const TempFolder folder;
  folder.Write("a", "abc");
  folder.Write("README.md", "abc");
  folder.Write("onnx/deeper/model.onnx", "abc");
  folder.Write("SHA256SUMS", std::string(kAbc) + "  a\n");
  EXPECT_THAT(CheckManifest(folder.path()), IsOk());
}

// Links are followed, so that a few files count as many.
TEST(ManifestTest, RefusesAFolderOfTooManyFiles) {
  constexpr int kFiles = 100;
  const TempFolder folder;
  folder.Write("a", "abc");
  folder.Write("SHA256SUMS", std::string(kAbc) + "  a\n");
  for (int i = 0; i < kFiles; ++i) {
    folder.Write("many/" + std::to_string(i), "x");
    std::filesystem::create_directory_symlink(
        "many", folder.Path("link" + std::to_string(i)));
  }
  EXPECT_THAT(
      CheckManifest(folder.path()),
      IsError(kDataLoss, "the folder of SHA256SUMS has more than 10000 files"));
  for (int i = 0; i < 10; ++i)
    std::filesystem::remove(folder.Path("link" + std::to_string(i)));
  EXPECT_THAT(CheckManifest(folder.path()), IsOk());
}

TEST(ManifestTest, SaysWhyItsFolderCannotBeListed) {
  namespace fs = std::filesystem;
  const TempFolder folder;
  folder.Write("a", "abc");
  folder.Write("closed/b", "abc");
  folder.Write("SHA256SUMS", std::string(kAbc) + "  a\n");
  for (const char* name : {"", "a", "SHA256SUMS"})
    fs::permissions(folder.Path(name), fs::perms::all);
  fs::permissions(folder.Path("closed"), fs::perms::none);
  {
    const Unprivileged user;
    EXPECT_THAT(CheckManifest(folder.path()),
                IsError(kDataLoss,
                        "cannot list the folder of SHA256SUMS: Permission "
                        "denied"));
  }
  fs::permissions(folder.Path("closed"), fs::perms::owner_all);
}

TEST(ManifestTest, RefusesWhatIsNotAManifest) {
  const TempFolder folder;
  folder.Write("a", "abc");
  for (const std::string& text :
       {std::string("\n"), std::string(kAbc), std::string(kAbc) + " a",
        std::string(kAbc) + "  ", std::string("x") + kAbc + "  a",
        "SHA256 (a) = " + std::string(kAbc)}) {
    folder.Write("SHA256SUMS", text);
    EXPECT_THAT(CheckManifest(folder.path()).status(), IsError(kDataLoss, ""))
        << text;
  }
}

}  // namespace
}  // namespace encoderd
