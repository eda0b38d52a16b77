#include "engine/device/cuda/host/attention_work.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace encoderd {
namespace cuda {
namespace {

constexpr DType kElements[] = {DType::kF32, DType::kF16, DType::kBF16};

int64_t Total(const AttentionCounts& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

TEST(AttentionPathTest, GoesByTheSequencesOwnLength) {
  const AttentionRule rule = {DType::kBF16, 64};
  EXPECT_EQ(rule.Of(1), AttentionPath::kWarp);
  EXPECT_EQ(rule.Of(16), AttentionPath::kWarp);
  EXPECT_EQ(rule.Of(17), AttentionPath::kWhole64);
  EXPECT_EQ(rule.Of(64), AttentionPath::kWhole64);
  EXPECT_EQ(rule.Of(65), AttentionPath::kWhole128);
  EXPECT_EQ(rule.Of(128), AttentionPath::kWhole128);
  EXPECT_EQ(rule.Of(129), AttentionPath::kGeneral);
}

TEST(AttentionPathTest, IsTheGeneralOneWhereNoOtherServes) {
  for (const int32_t length : {1, 16, 17, 64, 65, 128, 129}) {
    EXPECT_EQ(PathOf(DType::kF32, 64, length, kAllAttentionPaths),
              AttentionPath::kGeneral);
    EXPECT_EQ(PathOf(DType::kF16, 64, length, 0), AttentionPath::kGeneral);
  }
  // Q, K and V of 128 tokens do not lie in shared memory for large heads.
  const AttentionRule large = {DType::kF16, 72};
  EXPECT_EQ(large.Of(65), AttentionPath::kGeneral);
  EXPECT_EQ(large.Of(64), AttentionPath::kWhole64);
  const AttentionRule refused = {
      DType::kF16, 64, kAllAttentionPaths & ~PathBit(AttentionPath::kWhole64)};
  EXPECT_EQ(refused.Of(16), AttentionPath::kWarp);
  EXPECT_EQ(refused.Of(17), AttentionPath::kGeneral);
  EXPECT_EQ(refused.Of(65), AttentionPath::kWhole128);
}

TEST(AttentionWorkTest, GivesEveryQueryOfEverySequenceOnce) {
  std::mt19937 random(1);
  std::vector<int32_t> order;
  for (const DType element : kElements) {
    for (int round = 0; round < 100; ++round) {
      const AttentionRule rule = {
          element, round % 2 == 0 ? 64 : 128,
          static_cast<uint32_t>(random() % (kAllAttentionPaths + 1))};
      std::vector<int32_t> ends{0};
      const int sequences = 1 + static_cast<int>(random() % 20);
      const uint32_t longest = round % 3 == 0 ? 300 : 140;
      for (int i = 0; i < sequences; ++i)
        ends.push_back(ends.back() + static_cast<int32_t>(random() % longest));
      std::vector<AttentionWork> work(ends.back());
      const AttentionCounts counts =
          ListAttentionWork(ends, rule, &order, work.data());
      ASSERT_LE(Total(counts), ends.back());
      std::vector<int> times(ends.back(), 0);
      const AttentionWork* entry = work.data();
      for (int32_t p = 0; p < kAttentionPaths; ++p) {
        const auto path = static_cast<AttentionPath>(p);
        const int32_t queries = path == AttentionPath::kGeneral
                                    ? AttentionQueries(element)
                                    : PathTokens(path);
        int32_t last_length = INT32_MAX;
        for (int64_t i = 0; i < counts[p]; ++i, ++entry) {
          ASSERT_EQ(entry->path, path);
          ASSERT_EQ(entry->path, rule.Of(entry->length));
          EXPECT_LE(entry->length, last_length);  // long ones first
          last_length = entry->length;
          for (int32_t q = 0; q < queries; ++q) {
            const int32_t query = entry->query_block * queries + q;
            if (query < entry->length) ++times[entry->first + query];
          }
        }
      }
      for (const int t : times) ASSERT_EQ(t, 1);
    }
  }
}

TEST(AttentionWorkTest, KeepsToOneOrderForOneBatch) {
  std::vector<int32_t> order;
  AttentionWork work[8];
  const AttentionCounts counts =
      ListAttentionWork({0, 2, 4, 6, 7, 37}, {DType::kBF16, 64}, &order, work);
  EXPECT_EQ(counts, (AttentionCounts{0, 0, 1, 4}));
  EXPECT_EQ(work[0].first, 7);
  EXPECT_EQ(work[1].first, 0);
  EXPECT_EQ(work[2].first, 2);
  EXPECT_EQ(work[3].first, 4);
  EXPECT_EQ(work[4].length, 1);
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
