#include "engine/io/write_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "engine/io/file.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

using ::testing::HasSubstr;

size_t Files(const TempFolder& folder) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

TEST(WriteFileTest, MakesTheFolderAndReplacesTheWholeFile) {
  const TempFolder folder;
  const std::string inner = folder.Path("inner");
  ASSERT_TRUE(
      WriteFileAtomically(inner, "name", std::string(1 << 20, 'a')).ok());
  ASSERT_TRUE(WriteFileAtomically(inner, "name", "short").ok());
  EXPECT_EQ(ReadWholeFile(inner, "name", 100).value(), "short");
}

TEST(WriteFileTest, SaysWhatItCannotDoAndLeavesNothingBehind) {
  const TempFolder folder;
  folder.Write("file", "not a folder");
  const absl::Status in_file =
      WriteFileAtomically(folder.Path("file"), "name", "x");
  EXPECT_EQ(in_file.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(in_file.message()), HasSubstr("/file: Not a dir"));
  const absl::Status no_parent =
      WriteFileAtomically(folder.Path("a/b"), "name", "x");
  EXPECT_EQ(no_parent.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(no_parent.message()), HasSubstr("cannot make"));
  std::filesystem::create_directory(folder.Path("name"));
  const absl::Status over_folder =
      WriteFileAtomically(folder.path(), "name", "x");
  EXPECT_THAT(std::string(over_folder.message()), HasSubstr("cannot replace"));
  EXPECT_EQ(Files(folder), 2u);
}

// Takes the lock as another process would, without waiting, and leaves it.
bool IsFree(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  const bool free = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  ::close(fd);
  return free;
}

TEST(FileLockTest, HasOneOwnerUntilItIsDestroyed) {
  const TempFolder folder;
  const std::string inner = folder.Path("inner");
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<FileLock> lock = FileLock::Take(inner, "lock");
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_FALSE(IsFree(inner + "/lock"));
  }
  EXPECT_TRUE(IsFree(inner + "/lock"));
}

TEST(FileLockTest, WaitsForItsOwner) {
  const TempFolder folder;
  std::optional<FileLock> owner(FileLock::Take(folder.path(), "lock").value());
  int sleeps = 0;
  const absl::StatusOr<FileLock> lock =
      FileLock::Take(folder.path(), "lock", [&](absl::Duration) {
        if (++sleeps == 3) owner.reset();
      });
  EXPECT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(sleeps, 3);
}

TEST(FileLockTest, NamesTheFileAfterTenSecondsOfWaiting) {
  const TempFolder folder;
  const FileLock owner = FileLock::Take(folder.path(), "lock").value();
  absl::Duration slept;
  const absl::Status status =
      FileLock::Take(folder.path(), "lock", [&](absl::Duration pause) {
        slept += pause;
      }).status();
  EXPECT_EQ(slept, absl::Seconds(10));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "cannot lock " + folder.Path("lock") +
                                  ": another process has held it for 10s");
}

TEST(FileLockTest, SaysWhyItCannotBeTaken) {
  const TempFolder folder;
  folder.Write("file", "not a folder");
  EXPECT_EQ(FileLock::Take(folder.Path("file"), "lock").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(FileLock::Take(folder.Path("a/b"), "lock").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace encoderd
