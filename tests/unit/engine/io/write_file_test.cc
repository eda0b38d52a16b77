#include "engine/io/write_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

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
  EXPECT_EQ(in_file.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(in_file.message()), HasSubstr("/file: "));
  const absl::Status no_parent =
      WriteFileAtomically(folder.Path("a/b"), "name", "x");
  EXPECT_THAT(std::string(no_parent.message()), HasSubstr("cannot make"));
  std::filesystem::create_directory(folder.Path("name"));
  const absl::Status over_folder =
      WriteFileAtomically(folder.path(), "name", "x");
  EXPECT_THAT(std::string(over_folder.message()), HasSubstr("cannot replace"));
  EXPECT_EQ(Files(folder), 2u);
}

}  // namespace
}  // namespace encoderd
