// Attention against softmax(Q K^T / sqrt(D) + bias) V in double.
#include <cmath>

#include "engine/device/cuda/attention_work.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

struct Case {
  std::vector<int32_t> lengths;
  int32_t heads;
  int32_t head_size;
  float scale = 1.0f;  // of Q, K and V
  // Of the biases by distance, [heads, 2n-1] for sequences of up to n tokens;
  // n 0: none.
  int32_t bias_tokens = 0;

  int32_t bias_stride() const { return 2 * bias_tokens - 1; }
};

// The same for every run of a case.
std::vector<float> Biases(const Case& c) {
  if (c.bias_tokens == 0) return {};
  std::mt19937 random(9);
  return RandomValues(int64_t{c.heads} * c.bias_stride(), DType::kF32, &random,
                      2.0f);
}

int64_t Tokens(const Case& c) {
  int64_t tokens = 0;
  for (const int32_t length : c.lengths) tokens += length;
  return tokens;
}

std::vector<float> RunAttention(const std::vector<float>& qkv, const Case& c,
                                DType dtype) {
  std::vector<int32_t> ends{0};
  for (const int32_t length : c.lengths) ends.push_back(ends.back() + length);
  std::vector<AttentionWork> work(Tokens(c));
  std::vector<int32_t> order;
  work.resize(ListAttentionWork(ends, ElementOf(dtype), &order, work.data()));
  const OnCard on_card(qkv, dtype);
  const OnCard list = OnCard::Of(work);
  const bool biased = c.bias_tokens > 0;
  const OnCard biases(biased ? Biases(c) : std::vector<float>(1), DType::kF32);
  const OnCard context(Tokens(c) * c.heads * c.head_size * DTypeBytes(dtype));
  AttentionArgs args = {};
  args.element = ElementOf(dtype);
  args.qkv = on_card.data();
  args.work = list.as<AttentionWork>();
  args.work_count = static_cast<int64_t>(work.size());
  args.heads = c.heads;
  args.head_size = c.head_size;
  if (biased) {
    args.bias = biases.as<float>() + c.bias_tokens - 1;
    args.bias_stride = c.bias_stride();
  }
  args.context = context.data();
  EXPECT_EQ(Attention(args, nullptr), 0);
  return context.Values(dtype);
}

// One query of one head, and the largest probability-weighted |value|.
std::vector<double> Reference(const std::vector<float>& qkv, const Case& c,
                              const std::vector<float>& biases, int64_t first,
                              int32_t length, int32_t query, int32_t head) {
  const int64_t hidden = int64_t{c.heads} * c.head_size;
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
void Check(const Case& c, DType dtype, uint32_t seed = 1) {
  std::mt19937 random(seed);
  const int64_t hidden = int64_t{c.heads} * c.head_size;
  const std::vector<float> qkv =
      RandomValues(Tokens(c) * 3 * hidden, dtype, &random, c.scale);
  const std::vector<float> got = RunAttention(qkv, c, dtype);
  const std::vector<float> biases = Biases(c);
  double largest = 0;
  for (const float value : qkv)
    largest = std::max(largest, std::fabs(1.0 * value));
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
              << c.head_size << ", query " << query << ", head " << head
              << ", column " << d << ": " << value << " for " << want[d];
        }
      }
    }
    first += length;
  }
}

TEST(AttentionOpTest, EqualsTheReferenceAtEveryLengthUpToSeventy) {
  std::vector<int32_t> lengths;
  for (int32_t n = 1; n <= 70; ++n) lengths.push_back(n);
  for (const DType dtype : kDTypes) Check({lengths, 1, 32}, dtype);
}

TEST(AttentionOpTest, EqualsTheReferenceAroundEveryBlockUpTo512) {
  for (const DType dtype : kDTypes) {
    for (const int32_t n : {127, 128, 129, 191, 193, 257, 512})
      Check({{n}, 1, 64}, dtype);
  }
}

TEST(AttentionOpTest, EqualsTheReferenceAtEveryHeadSize) {
  for (const DType dtype : kDTypes) {
    for (const int32_t head_size :
         {8, 16, 24, 32, 40, 48, 64, 72, 96, 120, 128})
      Check({{3, 17, 66, 1}, 2, head_size}, dtype);
  }
  for (const int32_t head_size : {1, 5, 25, 33, 127})
    Check({{3, 17, 66, 1}, 2, head_size}, DType::kF32);
}

TEST(AttentionOpTest, AddsABiasForEachHeadAndDistance) {
  for (const DType dtype : kDTypes) {
    for (const int32_t head_size : {32, 40, 64, 128}) {
      // Exactly as many distances as the longest sequence has.
      Check({{3, 17, 66, 1}, 2, head_size, 1.0f, 66}, dtype);
    }
    Check({{130}, 1, 32, 1.0f, 200}, dtype);  // and more
  }
  Check({{3, 17, 66, 1}, 2, 25, 1.0f, 66}, DType::kF32);
}

TEST(AttentionOpTest, TakesManyHeadsAndRaggedLengths) {
  for (const DType dtype : kDTypes) Check({{2, 65, 1, 31, 130}, 12, 32}, dtype);
}

TEST(AttentionOpTest, KeepsSoftmaxFiniteWhereScoresAreHuge) {
  // Scores of thousands: exp of them overflows, their differences do not.
  for (const DType dtype : kDTypes) {
    const Case c = {{40, 70}, 1, 64, 30.0f};
    std::mt19937 random(2);
    const std::vector<float> got = RunAttention(
        RandomValues(Tokens(c) * 3 * 64, dtype, &random, c.scale), c, dtype);
    for (const float value : got) ASSERT_TRUE(std::isfinite(value));
  }
}

TEST(AttentionOpTest, GivesASequenceTheSameBitsInAnyCompany) {
  std::mt19937 random(3);
  for (const DType dtype : kDTypes) {
    const Case alone = {{77}, 2, 32};
    const std::vector<float> own = RandomValues(77 * 3 * 64, dtype, &random);
    const std::vector<float> want = RunAttention(own, alone, dtype);
    const Case company = {{5, 130, 77, 64}, 2, 32};
    std::vector<float> all =
        RandomValues(Tokens(company) * 3 * 64, dtype, &random);
    std::copy(own.begin(), own.end(), all.begin() + 135 * 3 * 64);
    const std::vector<float> got = RunAttention(all, company, dtype);
    EXPECT_EQ(std::memcmp(got.data() + 135 * 64, want.data(), want.size() * 4),
              0)
        << DTypeName(dtype);
  }
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
