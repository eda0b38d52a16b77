// Copying a batch from pinned memory of the host to the card.
#include <numeric>

#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

// Of less than a thread's share, of a block's, and of more.
TEST(UploadOpTest, CopiesWholeGroupsOf16BytesAndNoMore) {
  for (const int64_t bytes : {4, 16, 100, 2048, 2064, 70000}) {
    const int64_t groups = (bytes + 15) / 16;
    PinnedBuffer from;
    ASSERT_TRUE(from.Take(TestRuntime().get(), 16 * groups, "a test").ok());
    std::iota(from.as<char>(), from.as<char>() + 16 * groups, 1);
    const std::vector<char> before(16 * groups + 16, 0x7e);
    const OnCard to = OnCard::Of(before);
    const UploadOp op = {from.data(), to.data(), bytes};
    ASSERT_EQ(Start(op, nullptr), 0);
    const std::vector<char> got = to.Bytes();
    EXPECT_TRUE(std::equal(got.begin(), got.end() - 16, from.as<char>()));
    EXPECT_EQ(std::vector<char>(got.end() - 16, got.end()),
              std::vector<char>(16, 0x7e));
  }
}

TEST(UploadOpTest, DoesNothingForNoBytes) {
  EXPECT_EQ(Start(UploadOp(), nullptr), 0);
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
