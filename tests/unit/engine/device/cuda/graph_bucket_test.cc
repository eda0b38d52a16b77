#include "engine/device/cuda/graphs/graph_bucket.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <tuple>
#include <utility>

#include "engine/device/cuda/graphs/graph_cache.h"
#include "engine/device/cuda/host/attention_work.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr Element kElements[] = {Element::kFloat, Element::kHalf,
                                 Element::kBf16};

std::vector<int32_t> CuSeqlens(const std::vector<int32_t>& lengths) {
  std::vector<int32_t> cu_seqlens = {0};
  for (const int32_t length : lengths)
    cu_seqlens.push_back(cu_seqlens.back() + length);
  return cu_seqlens;
}

Bucket Of(const std::vector<int32_t>& lengths, int64_t max_batch_tokens = 8192,
          Element element = Element::kBf16) {
  return ChooseBucket(CuSeqlens(lengths), {element, 64}, max_batch_tokens)
      .value_or(Bucket());
}

TEST(GraphBucketTest, RoundsTokensUpToAFewCounts) {
  for (const auto& [tokens, rows] : {std::pair(1, 16),
                                     {16, 16},
                                     {17, 32},
                                     {33, 64},
                                     {65, 128},
                                     {128, 128},
                                     {129, 192},
                                     {193, 256},
                                     {257, 384},
                                     {385, 512},
                                     {512, 512},
                                     {513, 640},
                                     {1024, 1024},
                                     {1025, 1280},
                                     {2048, 2048}})
    EXPECT_EQ(Of({tokens}).rows, rows) << tokens;
}

TEST(GraphBucketTest, HasNoneForAnEmptyOrALargeBatch) {
  const AttentionRule rule = {Element::kBf16, 64};
  EXPECT_FALSE(ChooseBucket({0}, rule, 8192));
  EXPECT_TRUE(ChooseBucket({0, 256, 2048}, rule, 8192));
  EXPECT_FALSE(ChooseBucket({0, 256, 2049}, rule, 8192));
}

TEST(GraphBucketTest, StaysWithinTheExecutorsLimit) {
  EXPECT_EQ(Of({70}, 100).rows, 100);
  EXPECT_EQ(Of({100}, 100).rows, 100);
  EXPECT_EQ(Of({5}, 9).rows, 9);
  EXPECT_EQ(Of(std::vector<int32_t>(70, 1), 100).work, 100);
}

TEST(GraphBucketTest, RoundsWorkUpToAPowerOfTwo) {
  EXPECT_EQ(Of({16}).work, 1);
  EXPECT_EQ(Of({128}).work, 1);  // whole
  EXPECT_EQ(Of({129}).work, 4);  // three blocks of 64 queries
  EXPECT_EQ(Of({64, 64}).work, 2);
  EXPECT_EQ(Of({4, 4, 4, 4}).work, 4);
  EXPECT_EQ(Of({4, 4, 4, 4, 1}).work, 8);
  EXPECT_EQ(Of({65}, 8192, Element::kFloat).work, 8);  // 5 blocks of 16
}

TEST(GraphBucketTest, HoldsEveryEntryAndPadsTokensByABoundedShare) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<int32_t> lengths;
    int32_t room = 1 + static_cast<int32_t>(random() % kMostBucketRows);
    while (room > 0) {
      const int32_t length =
          std::min<int32_t>(room, 1 + static_cast<int32_t>(random() % 200));
      lengths.push_back(length);
      room -= length;
    }
    const std::vector<int32_t> cu_seqlens = CuSeqlens(lengths);
    const int64_t tokens = cu_seqlens.back();
    const AttentionRule rule = {kElements[i % 3], 64};
    const int64_t most = i % 2 == 0 ? 8192 : tokens;
    const Bucket bucket = ChooseBucket(cu_seqlens, rule, most).value();
    ASSERT_GE(bucket.rows, tokens);
    ASSERT_LE(bucket.rows, most);
    ASSERT_LE(2 * bucket.rows, std::max<int64_t>(256, 3 * tokens));
    ASSERT_LT(bucket.rows, std::max<int64_t>(17, 2 * tokens));
    if (tokens > 512) {
      ASSERT_LE(4 * bucket.rows, 5 * tokens);
    }
    ASSERT_GE(bucket.work, static_cast<int64_t>(lengths.size()));
    ASSERT_LE(bucket.work, bucket.rows);

    std::vector<int32_t> order;
    std::vector<AttentionWork> work(bucket.rows);
    const AttentionCounts counts =
        ListAttentionWork(cu_seqlens, rule, &order, work.data());
    int64_t entries = 0;
    for (const int64_t count : counts) entries += count;
    ASSERT_LE(entries, bucket.work);
    ASSERT_LT(bucket.work, 2 * entries);
  }
}

TEST(GraphBucketTest, AreFewEnoughForOneCacheWhenTextsComeAlone) {
  for (const Element element : kElements) {
    // A list of ops has its rows, its entries and its path of attention.
    std::set<std::tuple<int64_t, int64_t, AttentionPath>> buckets;
    for (int32_t n = 1; n <= kMostBucketRows; ++n) {
      const Bucket bucket = Of({n}, 8192, element);
      buckets.insert(
          {bucket.rows, bucket.work, AttentionRule{element, 64}.Of(n)});
    }
    EXPECT_LE(buckets.size(), GraphCache::kMost / 2);
  }
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
