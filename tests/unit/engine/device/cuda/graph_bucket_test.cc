#include "engine/device/cuda/graph_bucket.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

#include "engine/device/cuda/attention_work.h"

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
  return ChooseBucket(CuSeqlens(lengths), element, max_batch_tokens)
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
                                     {512, 512}})
    EXPECT_EQ(Of({tokens}).rows, rows) << tokens;
}

TEST(GraphBucketTest, HasNoneForAnEmptyOrALargeBatch) {
  EXPECT_FALSE(ChooseBucket({0}, Element::kBf16, 8192));
  EXPECT_TRUE(ChooseBucket({0, 256, 512}, Element::kBf16, 8192));
  EXPECT_FALSE(ChooseBucket({0, 256, 513}, Element::kBf16, 8192));
}

TEST(GraphBucketTest, StaysWithinTheExecutorsLimit) {
  EXPECT_EQ(Of({70}, 100).rows, 100);
  EXPECT_EQ(Of({100}, 100).rows, 100);
  EXPECT_EQ(Of({5}, 9).rows, 9);
  // 70 sequences of one token, and one that pads with 30.
  EXPECT_EQ(Of(std::vector<int32_t>(70, 1), 100).work, 100);
}

TEST(GraphBucketTest, RoundsWorkUpToAPowerOfTwo) {
  EXPECT_EQ(Of({16}).work, 1);
  EXPECT_EQ(Of({128}).work, 2);
  EXPECT_EQ(Of({65}).work, 4);  // two blocks of 64 queries, one that pads
  EXPECT_EQ(Of({64, 64}).work, 2);
  EXPECT_EQ(Of({4, 4, 4, 4}).work, 4);
  EXPECT_EQ(Of({4, 4, 4, 4, 1}).work, 8);
  EXPECT_EQ(Of({65}, 8192, Element::kFloat).work, 16);  // 5 and 4 blocks of 16
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
    std::vector<int32_t> cu_seqlens = CuSeqlens(lengths);
    const int64_t tokens = cu_seqlens.back();
    const Element element = kElements[i % 3];
    const int64_t most = i % 2 == 0 ? 8192 : tokens;
    const Bucket bucket = ChooseBucket(cu_seqlens, element, most).value();
    ASSERT_GE(bucket.rows, tokens);
    ASSERT_LE(bucket.rows, most);
    ASSERT_LE(2 * bucket.rows, std::max<int64_t>(256, 3 * tokens));
    ASSERT_LT(bucket.rows, std::max<int64_t>(17, 2 * tokens));
    ASSERT_GE(bucket.work, static_cast<int64_t>(lengths.size()));
    ASSERT_LE(bucket.work, bucket.rows);

    PadSequences(bucket.rows, element, &cu_seqlens);
    ASSERT_EQ(cu_seqlens.back(), bucket.rows);
    std::vector<int32_t> order;
    std::vector<AttentionWork> work(bucket.rows);
    const int64_t entries =
        ListAttentionWork(cu_seqlens, element, &order, work.data());
    ASSERT_LE(entries, bucket.work);
    ASSERT_LT(bucket.work, 2 * entries);
  }
}

TEST(GraphBucketTest, AreFewEnoughForOneCacheWhenTextsComeAlone) {
  for (const Element element : kElements) {
    std::set<std::pair<int64_t, int64_t>> buckets;
    for (int32_t n = 1; n <= kMostBucketRows; ++n) {
      const Bucket bucket = Of({n}, 8192, element);
      buckets.insert({bucket.rows, bucket.work});
    }
    EXPECT_LE(buckets.size(), 16u);
  }
}

TEST(GraphBucketTest, AddsNoSequenceWhereNoneIsMissing) {
  std::vector<int32_t> cu_seqlens = {0, 7, 16};
  PadSequences(16, Element::kBf16, &cu_seqlens);
  EXPECT_EQ(cu_seqlens, (std::vector<int32_t>{0, 7, 16}));
  PadSequences(100, Element::kBf16, &cu_seqlens);
  EXPECT_EQ(cu_seqlens, (std::vector<int32_t>{0, 7, 16, 80, 100}));
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
