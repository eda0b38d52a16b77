// Attention of each instruction set against double precision, and what a reach
// must leave unread.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/device/cpu/aligned_buffer.h"
#include "engine/device/cpu/op_parts.h"
#include "tests/unit/engine/device/kernel_test.h"

namespace encoderd {
namespace cpu {
namespace {

struct Shape {
  int64_t n = 0;
  int64_t heads = 0;
  int64_t size = 0;
  Reach reach = Reach();
  float scale = 1;  // deviation of Q, K and V
  float bias = 0;   // deviation of a bias by distance; 0: none

  int64_t hidden() const { return heads * size; }
  bool Sees(int64_t query, int64_t key) const {
    return (reach.left < 0 || query - key <= reach.left) &&
           (reach.right < 0 || key - query <= reach.right);
  }
};

class AttentionKernelTest : public KernelTest {
 protected:
  // The context of qkv. biases: as AttentionOp has them, or null.
  std::string Attend(const Shape& shape, const std::string& qkv,
                     const float* biases = nullptr, int64_t stride = 0) const {
    std::string context = EmptyContext(shape, shape.n);
    AttendTo(AttentionOp(), shape, qkv, biases, stride, &context);
    return context;
  }

  std::string EmptyContext(const Shape& shape, int64_t rows) const {
    return std::string(rows * shape.hidden() * (kernels_.bf16 ? 2 : 4), '\0');
  }

  // Of the heads and query rows that `op` names; context has these rows.
  void AttendTo(AttentionOp op, const Shape& shape, const std::string& qkv,
                const float* biases, int64_t stride,
                std::string* context) const {
    const AlignedBuffer scratch(
        kernels_.attention_scratch_bytes(shape.n, shape.size));
    op.qkv = View(qkv, shape.n);
    op.heads = static_cast<int32_t>(shape.heads);
    op.head_size = static_cast<int32_t>(shape.size);
    op.reach = shape.reach;
    op.bias = biases;
    op.bias_stride = static_cast<int32_t>(stride);
    op.context = View(*context, op.query_count == 0 ? shape.n : op.query_count);
    Run(op, scratch.data());
  }

  // By `count` query rows at every multiple of `step`: pieces of a head, as
  // threads that share it have them, or single rows.
  void ExpectBitsOfTheWhole(const Shape& shape, int64_t step, int64_t count) {
    std::vector<float> qkv = Random(shape.n * 3 * shape.hidden(), shape.scale);
    const std::string bytes = Elements(&qkv);
    const int64_t stride = 2 * shape.n + kBiasPadding;
    const std::vector<float> biases = Random(shape.heads * stride, shape.bias);
    const float* bias = shape.bias != 0 ? biases.data() + shape.n : nullptr;
    const std::string whole = Attend(shape, bytes, bias, stride);
    for (int64_t first = 0; first < shape.n; first += step) {
      const int64_t rows = std::min(count, shape.n - first);
      std::string piece = EmptyContext(shape, rows);
      for (int64_t head = 0; head < shape.heads; ++head) {
        AttentionOp op;
        op.first_head = static_cast<int32_t>(head);
        op.head_count = 1;
        op.first_query = first;
        op.query_count = rows;
        AttendTo(op, shape, bytes, bias, stride, &piece);
      }
      const size_t row_bytes = whole.size() / shape.n;
      EXPECT_EQ(piece, whole.substr(first * row_bytes, rows * row_bytes))
          << "n " << shape.n << ", reach " << shape.reach.left << ", "
          << shape.reach.right << ", rows from " << first;
    }
  }

  void ExpectAttention(const Shape& shape) {
    const int64_t n = shape.n, hidden = shape.hidden();
    std::vector<float> qkv = Random(n * 3 * hidden, shape.scale);
    const std::string bytes = Elements(&qkv);
    // Longer than the sequence needs, as of a model that takes longer ones.
    const int64_t stride = 2 * n + 6 + kBiasPadding, zero = n + 2;
    const std::vector<float> biases = Random(shape.heads * stride, shape.bias);
    const float* bias = shape.bias != 0 ? biases.data() + zero : nullptr;
    const std::vector<float> got = Floats(Attend(shape, bytes, bias, stride));
    std::vector<double> p(n), want(shape.size);
    for (int64_t head = 0; head < shape.heads; ++head) {
      const float* q = qkv.data() + head * shape.size;
      for (int64_t i = 0; i < n; ++i) {
        double highest = -std::numeric_limits<double>::infinity();
        for (int64_t j = 0; j < n; ++j) {
          if (!shape.Sees(i, j)) continue;
          p[j] = 0;
          for (int64_t d = 0; d < shape.size; ++d) {
            p[j] +=
                double{q[i * 3 * hidden + d]} * q[j * 3 * hidden + hidden + d];
          }
          p[j] /= std::sqrt(static_cast<double>(shape.size));
          if (bias != nullptr) p[j] += double{bias[head * stride + j - i]};
          highest = std::max(highest, p[j]);
        }
        double sum = 0;
        std::fill(want.begin(), want.end(), 0);
        for (int64_t j = 0; j < n; ++j) {
          if (!shape.Sees(i, j)) continue;
          const double weight = std::exp(p[j] - highest);
          sum += weight;
          for (int64_t d = 0; d < shape.size; ++d)
            want[d] += weight * q[j * 3 * hidden + 2 * hidden + d];
        }
        for (int64_t d = 0; d < shape.size; ++d) {
          ASSERT_NEAR(got[i * hidden + head * shape.size + d], want[d] / sum,
                      tolerance() * std::max(1.0f, shape.scale * shape.scale))
              << "n " << n << ", reach " << shape.reach.left << ", "
              << shape.reach.right << ", head " << head << ", row " << i << ", "
              << d;
        }
      }
    }
  }
};

constexpr Reach kCausal = {-1, 0};

TEST_P(AttentionKernelTest, AttendsAtManyLengthsAndHeadSizes) {
  for (const int64_t size : {1, 3, 16, 25, 32, 40, 64, 96, 100}) {
    for (const int64_t n : {1, 2, 5, 16, 23, 24, 25, 33, 64, 65, 130})
      ExpectAttention({n, 2, size});
  }
}

TEST_P(AttentionKernelTest, AttendsWithABiasByDistance) {
  for (const int64_t size : {1, 25, 32, 64}) {
    for (const int64_t n : {1, 2, 15, 16, 17, 24, 25, 64, 130})
      ExpectAttention({n, 3, size, Reach(), 1.0f, 2.0f});
  }
}

TEST_P(AttentionKernelTest, AttendsOverFiveHundredAndTwelveTokens) {
  ExpectAttention({512, 1, 32});
  ExpectAttention({512, 1, 64});
}

TEST_P(AttentionKernelTest, AttendsWithScoresThatDwarfEachOther) {
  // Scores of thousands: only differences from the largest may reach exp.
  ExpectAttention({40, 1, 32, Reach(), 30.0f});
  ExpectAttention({40, 1, 32, kCausal, 10.0f});
  ExpectAttention({40, 1, 32, {9, 12}, 10.0f});
}

// Two keys share a score of 1e7 to 1e13, where a float's steps are large.
TEST_P(AttentionKernelTest,
       HalvesAttentionBetweenEqualKeysHoweverHighTheyScore) {
  const Shape shape = {.n = 5, .heads = 1, .size = 16};
  for (int step = 0; step < 200; ++step) {
    std::vector<float> qkv(shape.n * 3 * shape.hidden(), 0.0f);
    const auto row = [&](int64_t i) { return &qkv[i * 3 * shape.hidden()]; };
    for (int64_t i = 0; i < shape.n; ++i)
      row(i)[0] = 1e4f * std::pow(1.0351f, static_cast<float>(step));
    for (const int64_t i : {1, 3}) {
      row(i)[shape.hidden()] = 4321;
      row(i)[2 * shape.hidden()] = static_cast<float>(i);
    }
    const std::vector<float> got = Floats(Attend(shape, Elements(&qkv)));
    for (int64_t i = 0; i < shape.n; ++i)
      ASSERT_NEAR(got[i * shape.hidden()], 2, 1e-2) << row(i)[0];
  }
}

TEST_P(AttentionKernelTest, AttendsOnlyToKeysWithinReach) {
  const std::vector<Reach> reaches = {kCausal, {0, 0},   {64, 64}, {5, -1},
                                      {0, -1}, {3, 17},  {1, 0},   {30, 2},
                                      {-1, 9}, {200, 1}, {7, 300}};
  for (const Reach& reach : reaches) {
    for (const int64_t n : {1, 2, 17, 24, 64, 65, 131, 290}) {
      ExpectAttention({n, 2, 25, reach});
      ExpectAttention({n, 1, 64, reach, 1.0f, 2.0f});
    }
  }
}

TEST_P(AttentionKernelTest, GivesARowAloneTheBitsOfTheWhole) {
  for (const int64_t n : {1, 17, 130, 333}) {
    for (const Reach& reach :
         {Reach(), kCausal, Reach{64, 64}, Reach{3, 17}, Reach{200, 1}}) {
      // 0, 37, ...: at any place of a group and of a panel of keys; the last.
      ExpectBitsOfTheWhole({n, 2, 25, reach}, 37, 1);
      ExpectBitsOfTheWhole({n, 1, 64, reach, 1.0f, 2.0f}, 37, 1);
      ExpectBitsOfTheWhole({n, 2, 25, reach}, std::max<int64_t>(n - 1, 1), 1);
    }
  }
}

TEST_P(AttentionKernelTest, GivesPiecesOfAHeadTheBitsOfTheWhole) {
  for (const int64_t n : {97, 192, 250, 333, 512}) {
    for (const Reach& reach :
         {Reach(), kCausal, Reach{64, 64}, Reach{3, 17}, Reach{200, 1}}) {
      ExpectBitsOfTheWhole({n, 2, 25, reach}, kQueryStep, kQueryStep);
      ExpectBitsOfTheWhole({n, 1, 64, reach, 1.0f, 2.0f}, kQueryStep,
                           kQueryStep);
    }
  }
}

TEST_P(AttentionKernelTest, AttendsWithinAWindowOfEightThousandTokens) {
  ExpectAttention({8192, 1, 64, {64, 64}});
}

TEST_P(AttentionKernelTest, TakesScratchByTheLengthAndNotByItsSquare) {
  const int64_t half = kernels_.attention_scratch_bytes(4096, 64);
  EXPECT_LE(kernels_.attention_scratch_bytes(8192, 64), 2 * half);
  EXPECT_LT(half, 16 << 20);
}

TEST_P(AttentionKernelTest, GivesTheSameBitsToAReachThatLimitsNothing) {
  for (const int64_t n : {1, 24, 65, 200}) {
    std::vector<float> qkv = Random(n * 3 * 64, 1.0f);
    const std::string bytes = Elements(&qkv);
    const auto last = static_cast<int32_t>(n - 1);
    EXPECT_EQ(Attend({n, 2, 32, {last, last}}, bytes),
              Attend({n, 2, 32}, bytes));
  }
}

TEST_P(AttentionKernelTest, GivesACausalRowTheBitsOfTheLastOfASequence) {
  std::vector<float> qkv = Random(200 * 3 * 64, 1.0f);
  const std::string bytes = Elements(&qkv);
  const std::string all = Attend({200, 2, 32, kCausal}, bytes);
  const size_t in = bytes.size() / 200, out = all.size() / 200;
  for (const int64_t n : {1, 2, 16, 17, 24, 25, 64, 65, 131, 200}) {
    const std::string whole = Attend({n, 2, 32}, bytes.substr(0, n * in));
    EXPECT_EQ(whole.substr((n - 1) * out), all.substr((n - 1) * out, out)) << n;
  }
}

TEST_P(AttentionKernelTest, GivesTheSameBitsWhateverFollowsACausalRow) {
  const Shape whole = {300, 2, 32, kCausal};
  std::vector<float> qkv = Random(whole.n * 3 * 64, 1.0f);
  const std::string bytes = Elements(&qkv), all = Attend(whole, bytes);
  for (const int64_t n : {1, 2, 23, 24, 25, 64, 130, 299}) {
    const std::string some =
        Attend({n, 2, 32, kCausal}, bytes.substr(0, bytes.size() / 300 * n));
    EXPECT_EQ(some, all.substr(0, some.size())) << n;
  }
}

TEST_P(AttentionKernelTest, LeavesKeysOutOfReachUnread) {
  const Shape shape = {1000, 1, 16, {8, 8}};
  const int64_t at = 500, hidden = shape.hidden();
  // A group of queries reads the panels of keys that any of it sees.
  const int64_t margin = 128;
  std::vector<float> qkv = Random(shape.n * 3 * hidden, 1.0f);
  const std::vector<float> before = Floats(Attend(shape, Elements(&qkv)));
  for (int64_t d = hidden; d < 3 * hidden; ++d)
    qkv[at * 3 * hidden + d] = std::nanf("");
  const std::vector<float> after = Floats(Attend(shape, Elements(&qkv)));
  for (int64_t i = 0; i < shape.n; ++i) {
    for (int64_t d = 0; d < hidden; ++d) {
      const int64_t value = i * hidden + d;
      if (shape.Sees(i, at)) {
        EXPECT_TRUE(std::isnan(after[value])) << i;
      } else if (i < at - margin || i > at + margin) {
        EXPECT_EQ(after[value], before[value]) << i;
      }
    }
  }
}

TEST_P(AttentionKernelTest, GivesTheSameBitsWhateverLiesOutOfReach) {
  for (const Reach& reach : {kCausal, Reach{8, 8}, Reach{40, 3}}) {
    const Shape shape = {150, 2, 25, reach};
    const int64_t at = 70, row = 3 * shape.hidden();
    std::vector<float> qkv = Random(shape.n * row, 1.0f);
    const std::vector<float> before = Floats(Attend(shape, Elements(&qkv)));
    for (int64_t d = 0; d < row; ++d) qkv[at * row + d] *= -100;
    const std::vector<float> after = Floats(Attend(shape, Elements(&qkv)));
    for (int64_t i = 0; i < shape.n; ++i) {
      if (i == at || shape.Sees(i, at)) continue;
      for (int64_t d = 0; d < shape.hidden(); ++d) {
        const int64_t value = i * shape.hidden() + d;
        ASSERT_EQ(after[value], before[value]) << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionKernelTest,
                         ::testing::ValuesIn(TestDevices()), KernelTestName);

}  // namespace
}  // namespace cpu
}  // namespace encoderd
