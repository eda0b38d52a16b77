// Attention against softmax(Q K^T / sqrt(D) + bias) V over the keys within
// reach, in double.
#include <algorithm>
#include <cmath>

#include "tests/unit/engine/device/cuda/attention_runs.h"

namespace encoderd {
namespace cuda {
namespace {

using Case = AttentionCase;

// One query of one head, and the largest probability-weighted |value|.
std::vector<double> Reference(const std::vector<float>& qkv, const Case& c,
                              const std::vector<float>& biases, int64_t first,
                              int32_t length, int32_t query, int32_t head) {
  const int64_t hidden = c.hidden();
  const auto at = [&](int64_t row, int matrix) {
    return qkv.data() + (first + row) * 3 * hidden + matrix * hidden +
           head * c.head_size;
  };
  std::vector<double> scores(length);
  double max = -INFINITY, sum = 0;
  for (int32_t k = 0; k < length; ++k) {
    for (int32_t d = 0; d < c.head_size; ++d)
      scores[k] += double{at(query, 0)[d]} * at(k, 1)[d];
    scores[k] /= std::sqrt(static_cast<double>(c.head_size));
    if (!biases.empty())
      scores[k] +=
          biases[head * c.bias_stride() + c.bias_tokens - 1 + k - query];
    if ((c.reach.left >= 0 && query - k > c.reach.left) ||
        (c.reach.right >= 0 && k - query > c.reach.right))
      scores[k] = -INFINITY;
    max = std::max(max, scores[k]);
  }
  for (double& score : scores) sum += score = std::exp(score - max);
  std::vector<double> out(c.head_size, 0.0);
  for (int32_t k = 0; k < length; ++k) {
    for (int32_t d = 0; d < c.head_size; ++d)
      out[d] += scores[k] / sum * at(k, 2)[d];
  }
  return out;
}

// Largest difference. A 16-bit form rounds each probability (relative epsilon,
// so epsilon times the values' size in all) and the result once; float sums add
// less than 2e-6 per unit of the values' size.
void CheckOf(const std::vector<float>& qkv, const Case& c, DType dtype) {
  const int64_t hidden = c.hidden();
  const std::vector<float> got = RunAttention(qkv, c, dtype);
  const std::vector<float> biases = c.Biases();
  double largest = 0;
  for (int64_t token = 0; token < c.tokens(); ++token) {
    for (int64_t i = 2 * hidden; i < 3 * hidden; ++i)
      largest = std::max(largest, std::fabs(1.0 * qkv[token * 3 * hidden + i]));
  }
  const double tolerance =
      largest * (dtype == DType::kF32 ? 4e-6 : 2 * Epsilon(dtype));
  int64_t first = 0;
  for (const int32_t length : c.lengths) {
    for (int32_t head = 0; head < c.heads; ++head) {
      for (int32_t query = 0; query < length; ++query) {
        const std::vector<double> want =
            Reference(qkv, c, biases, first, length, query, head);
        for (int32_t d = 0; d < c.head_size; ++d) {
          const float value =
              got[(first + query) * hidden + head * c.head_size + d];
          // Also false for NaN, which is what was never written holds.
          ASSERT_TRUE(std::fabs(value - want[d]) <= tolerance)
              << DTypeName(dtype) << ", length " << length << ", head size "
              << c.head_size << ", reach " << c.reach.left << " and "
              << c.reach.right << ", query " << query << ", head " << head
              << ", column " << d << ": " << value << " for " << want[d];
        }
      }
    }
    first += length;
  }
}

void Check(const Case& c, DType dtype, uint32_t seed = 1) {
  std::mt19937 random(seed);
  CheckOf(RandomValues(c.tokens() * 3 * c.hidden(), dtype, &random, c.scale), c,
          dtype);
}

// Every path that takes the lengths, and the general one for all.
void CheckPaths(const Case& c, DType dtype) {
  Case general = c;
  general.allowed = 0;
  Check(c, dtype);
  if (dtype != DType::kF32) Check(general, dtype);
}

TEST(AttentionOpTest, EqualsTheReferenceAtEveryLengthUpToSeventy) {
  std::vector<int32_t> lengths;
  for (int32_t n = 1; n <= 70; ++n) lengths.push_back(n);
  for (const DType dtype : kDTypes) CheckPaths({lengths, 1, 32}, dtype);
}

TEST(AttentionOpTest, EqualsTheReferenceAroundEveryBlockUpTo512) {
  for (const DType dtype : kDTypes) {
    for (const int32_t n :
         {79, 80, 81, 96, 97, 112, 113, 127, 128, 129, 191, 193, 257, 512})
      Check({{n}, 1, 64}, dtype);
    for (const int32_t n : {95, 96, 97, 128, 129, 257})
      Check({{n}, 1, 128}, dtype);
  }
}

TEST(AttentionOpTest, EqualsTheReferenceAtEveryHeadSize) {
  for (const DType dtype : kDTypes) {
    for (const int32_t head_size :
         {8, 16, 24, 32, 40, 48, 64, 72, 96, 120, 128})
      CheckPaths({{3, 17, 66, 1, 40}, 2, head_size}, dtype);
  }
  for (const int32_t head_size : {1, 5, 25, 33, 127})
    Check({{3, 17, 66, 1}, 2, head_size}, DType::kF32);
}

TEST(AttentionOpTest, AddsABiasForEachHeadAndDistance) {
  for (const DType dtype : kDTypes) {
    for (const int32_t head_size : {32, 40, 64, 128}) {
      // Exactly as many distances as the longest sequence has.
      CheckPaths({{3, 17, 66, 1}, 2, head_size, 1.0f, 66}, dtype);
    }
    Check({{100, 130}, 1, 32, 1.0f, 200}, dtype);  // and more
  }
  Check({{3, 17, 66, 1}, 2, 25, 1.0f, 66}, DType::kF32);
}

TEST(AttentionOpTest, TakesManyHeadsAndRaggedLengths) {
  for (const DType dtype : kDTypes)
    Check({{2, 65, 1, 31, 130, 16}, 13, 32}, dtype);
}

TEST(AttentionOpTest, KeepsSoftmaxFiniteWhereScoresAreHuge) {
  // Scores of thousands: exp of them overflows, their differences do not.
  for (const DType dtype : kDTypes) {
    const Case c = {{40, 70}, 1, 64, 30.0f};
    std::mt19937 random(2);
    const std::vector<float> got = RunAttention(
        RandomValues(c.tokens() * 3 * 64, dtype, &random, c.scale), c, dtype);
    for (const float value : got) ASSERT_TRUE(std::isfinite(value));
  }
}

TEST(AttentionOpTest, EqualsTheReferenceAtScoresOfTheLargestHalf) {
  // 368 * 1424 / sqrt(64) is 65504, exact in every form. Every third key has
  // it, the others its negative; in the second sequence all are negative.
  const Case c = {{40, 23, 70}, 1, 64};
  Case general = c;
  general.allowed = 0;
  for (const DType dtype : kDTypes) {
    std::mt19937 random(5);
    std::vector<float> qkv =
        RandomValues(c.tokens() * 3 * c.hidden(), dtype, &random);
    for (int64_t token = 0; token < c.tokens(); ++token) {
      float* const row = qkv.data() + token * 3 * c.hidden();
      std::fill(row, row + 2 * c.hidden(), 0.0f);
      row[0] = 368;
      const bool second = token >= 40 && token < 63;
      row[c.hidden()] = token % 3 == 0 && !second ? 1424 : -1424;
    }
    CheckOf(qkv, c, dtype);
    CheckOf(qkv, general, dtype);
  }
}

TEST(AttentionOpTest, TakesHeadsThatDoNotFillABlockOfWarps) {
  for (int32_t heads = 1; heads <= 6; ++heads)
    Check({{16, 1, 5}, heads, 32, 1.0f, 16}, DType::kBF16);
}

TEST(AttentionOpTest, GivesTheSameBitsWhereEachPathSeesTheWholeList) {
  std::mt19937 random(4);
  for (const DType dtype : kDTypes) {
    for (const int32_t head_size : {32, 128}) {
      Case c = {{130, 16, 64, 128, 1, 65, 17, 0, 200, 30}, 2, head_size};
      const std::vector<float> qkv =
          RandomValues(c.tokens() * 3 * c.hidden(), dtype, &random);
      const std::vector<float> want = RunAttention(qkv, c, dtype);
      c.padded = true;
      EXPECT_EQ(RunAttention(qkv, c, dtype), want) << DTypeName(dtype);
    }
  }
}

// A random batch of sequences that also ran alone. Lengths around every border
// between paths and groups of keys come often.
void CheckCompany(DType dtype, int32_t head_size, uint32_t allowed,
                  int32_t bias_tokens, int batches, Reach reach = {}) {
  std::mt19937 random(3);
  const std::vector<int32_t> lengths = {1,  2,  15, 16,  17,  31,  32,  33,
                                        63, 64, 65, 100, 127, 128, 129, 150};
  Case alone = {{}, 2, head_size, 1.0f, bias_tokens, allowed, false, reach};
  const int64_t hidden = alone.hidden();
  std::vector<std::vector<float>> own, want;
  for (const int32_t length : lengths) {
    alone.lengths = {length};
    own.push_back(RandomValues(length * 3 * hidden, dtype, &random));
    want.push_back(RunAttention(own.back(), alone, dtype));
  }
  for (int b = 0; b < batches; ++b) {
    Case company = alone;
    company.lengths.clear();
    company.padded = b % 2 == 1;
    std::vector<size_t> which;
    std::vector<float> all;
    for (int i = 1 + static_cast<int>(random() % 4); i > 0; --i) {
      // Squared: short ones more often, so that many batches take little time.
      const double part = static_cast<double>(random() % 1000) / 1000;
      which.push_back(static_cast<size_t>(part * part * lengths.size()));
      company.lengths.push_back(lengths[which.back()]);
      all.insert(all.end(), own[which.back()].begin(), own[which.back()].end());
    }
    const std::vector<float> got = RunAttention(all, company, dtype);
    const float* at = got.data();
    for (const size_t i : which) {
      ASSERT_EQ(std::memcmp(at, want[i].data(), want[i].size() * 4), 0)
          << DTypeName(dtype) << ", head size " << head_size << ", batch " << b
          << ", length " << lengths[i];
      at += want[i].size();
    }
  }
}

TEST(AttentionOpTest, GivesASequenceTheSameBitsInAnyBatch) {
  for (const DType dtype : kDTypes) CheckCompany(dtype, 32, 0, 0, 10);
  CheckCompany(DType::kBF16, 32, kAllAttentionPaths, 0, 100);
  CheckCompany(DType::kF16, 64, kAllAttentionPaths, 150, 80);
  CheckCompany(DType::kBF16, 128, kAllAttentionPaths, 0, 20);
}

TEST(AttentionOpTest, GivesASequenceTheSameBitsInAnyBatchWithinReach) {
  CheckCompany(DType::kF32, 32, 0, 0, 200, {-1, 0});
  CheckCompany(DType::kBF16, 32, kAllAttentionPaths, 0, 200, {-1, 0});
  CheckCompany(DType::kF16, 32, kAllAttentionPaths, 150, 200, {16, 16});
}

// Causal, both of one side alone, windows that cut tiles at every place.
constexpr Reach kReaches[] = {{-1, 0}, {0, -1}, {0, 0},   {1, 0},   {3, 9},
                              {15, 1}, {-1, 7}, {64, 64}, {40, -1}, {70, 33}};

TEST(AttentionOpTest, SeesNoKeyBeyondTheReachOnAnyPath) {
  for (const DType dtype : kDTypes) {
    for (const Reach& reach : kReaches) {
      CheckPaths({{1, 2, 15, 16, 17, 33, 64, 65, 97},
                  1,
                  32,
                  1.0f,
                  0,
                  kAllAttentionPaths,
                  false,
                  reach},
                 dtype);
    }
  }
}

TEST(AttentionOpTest, SeesNoKeyBeyondTheReachAcrossManyBlocks) {
  for (const DType dtype : kDTypes) {
    for (const Reach& reach : kReaches) {
      Check({{129, 257}, 1, 16, 1.0f, 0, kAllAttentionPaths, false, reach},
            dtype);
    }
  }
}

TEST(AttentionOpTest, SeesNoKeyBeyondTheReachAtEveryHeadSize) {
  for (const DType dtype : kDTypes) {
    for (const int32_t head_size : {8, 24, 32, 64, 72, 128}) {
      CheckPaths({{5, 40, 70},
                  2,
                  head_size,
                  1.0f,
                  0,
                  kAllAttentionPaths,
                  false,
                  {20, 6}},
                 dtype);
    }
  }
}

TEST(AttentionOpTest, AddsABiasWithinTheReach) {
  for (const DType dtype : kDTypes) {
    for (const Reach& reach : {Reach{-1, 0}, Reach{20, 6}}) {
      CheckPaths({{3, 17, 66, 130},
                  2,
                  32,
                  1.0f,
                  130,
                  kAllAttentionPaths,
                  false,
                  reach},
                 dtype);
    }
  }
}

TEST(AttentionOpTest, GivesTheSameBitsWhereTheReachCoversTheSequence) {
  std::mt19937 random(5);
  for (const DType dtype : kDTypes) {
    for (const int32_t bias_tokens : {0, 150}) {
      Case c = {{150, 100, 40, 16, 1}, 2, 32, 1.0f, bias_tokens};
      const std::vector<float> qkv =
          RandomValues(c.tokens() * 3 * c.hidden(), dtype, &random);
      const std::vector<float> want = RunAttention(qkv, c, dtype);
      for (const Reach& reach :
           {Reach{149, 149}, Reach{-1, 149}, Reach{INT32_MAX, INT32_MAX}}) {
        c.reach = reach;
        EXPECT_EQ(RunAttention(qkv, c, dtype), want)
            << DTypeName(dtype) << ", reach " << reach.left << " and "
            << reach.right;
      }
    }
  }
}

// A NaN among the keys or values that a block loads shows in its results, also
// where the weight is 0.
TEST(AttentionOpTest, LoadsNoKeyThatNoQueryOfABlockSees) {
  std::mt19937 random(6);
  for (const auto& [dtype, head_size] :
       {std::pair<DType, int32_t>{DType::kF32, 32},
        {DType::kF16, 32},
        {DType::kF16, 64},
        {DType::kF16, 128},
        {DType::kBF16, 32}}) {
    const Case c = {{400}, 1, head_size, 1.0f, 0, 0, false, {16, 16}};
    const int32_t queries = AttentionQueries(dtype);
    std::vector<float> qkv =
        RandomValues(c.tokens() * 3 * c.hidden(), dtype, &random);
    const std::vector<float> want = RunAttention(qkv, c, dtype);
    // A tile of keys may reach past the last that is seen.
    const int32_t first = 192, end = first + queries;
    for (int32_t row = 0; row < 400; ++row) {
      if (row >= first - 16 && row < end + 16 + 64) continue;
      std::fill_n(qkv.begin() + (3 * row + 1) * c.hidden(), 2 * c.hidden(),
                  NAN);
    }
    const std::vector<float> got = RunAttention(qkv, c, dtype);
    EXPECT_EQ(std::memcmp(&got[first * c.hidden()], &want[first * c.hidden()],
                          4 * queries * c.hidden()),
              0)
        << DTypeName(dtype) << ", " << head_size;
  }
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
