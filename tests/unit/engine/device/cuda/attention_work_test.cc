#include "engine/device/cuda/attention_work.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace encoderd {
namespace cuda {
namespace {

TEST(AttentionWorkTest, GivesEveryQueryOfEverySequenceOnce) {
  std::mt19937 random(1);
  std::vector<int32_t> order;
  for (const Element element :
       {Element::kFloat, Element::kHalf, Element::kBf16}) {
    for (int round = 0; round < 50; ++round) {
      std::vector<int32_t> ends{0};
      const int sequences = 1 + static_cast<int>(random() % 20);
      for (int i = 0; i < sequences; ++i)
        ends.push_back(ends.back() + 1 + static_cast<int32_t>(random() % 300));
      std::vector<AttentionWork> work(ends.back());
      const int64_t count =
          ListAttentionWork(ends, element, &order, work.data());
      ASSERT_LE(count, ends.back());
      std::vector<int> times(ends.back(), 0);
      int32_t last_length = INT32_MAX;
      for (int64_t w = 0; w < count; ++w) {
        EXPECT_LE(work[w].length, last_length);  // long ones first
        last_length = work[w].length;
        const int32_t queries = AttentionQueries(element);
        for (int32_t q = 0; q < queries; ++q) {
          const int32_t query = work[w].query_block * queries + q;
          if (query < work[w].length) ++times[work[w].first + query];
        }
      }
      for (const int t : times) ASSERT_EQ(t, 1);
    }
  }
}

TEST(AttentionWorkTest, KeepsToOneOrderForOneBatch) {
  std::vector<int32_t> order;
  AttentionWork work[8];
  ASSERT_EQ(ListAttentionWork({0, 2, 4, 6, 7}, Element::kBf16, &order, work),
            4);
  EXPECT_EQ(work[0].first, 0);
  EXPECT_EQ(work[1].first, 2);
  EXPECT_EQ(work[2].first, 4);
  EXPECT_EQ(work[3].length, 1);
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
