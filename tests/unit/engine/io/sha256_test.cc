#include "engine/io/sha256.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

TEST(Sha256Test, GivesTheDigestsOfTheStandard) {
  EXPECT_EQ(Sha256OfString("abc").value(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256OfString("").value(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256Test, AFileInManyChunksHasTheDigestOfItsBytes) {
  const TempFolder folder;
  std::string bytes;
  for (int i = 0; i < (3 << 20) + 17; ++i) bytes.push_back(char(i * 7));
  folder.Write("a", bytes);
  const absl::StatusOr<File> file = File::Open(folder.path(), "a", 1 << 30);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(Sha256OfFile(*file).value(), Sha256OfString(bytes).value());
}

TEST(Sha256Test, StopsWhenItIsTold) {
  const TempFolder folder;
  folder.Write("a", "abc");
  const absl::StatusOr<File> file = File::Open(folder.path(), "a", 1 << 30);
  ASSERT_THAT(file, IsOk());
  std::atomic<bool> stop = false;
  EXPECT_EQ(Sha256OfFile(*file, &stop).value(), Sha256OfString("abc").value());
  stop = true;
  EXPECT_THAT(Sha256OfFile(*file, &stop),
              IsError(absl::StatusCode::kCancelled, "stopped"));
}

TEST(Sha256Test, RefusesAFileThatWasCut) {
  const TempFolder folder;
  folder.Write("a", std::string(100, 'x'));
  const absl::StatusOr<File> file = File::Open(folder.path(), "a", 1 << 30);
  ASSERT_THAT(file, IsOk());
  ASSERT_EQ(::truncate(folder.Path("a").c_str(), 10), 0);
  EXPECT_THAT(Sha256OfFile(*file),
              IsError(absl::StatusCode::kDataLoss, "ends at byte"));
}

}  // namespace
}  // namespace encoderd
