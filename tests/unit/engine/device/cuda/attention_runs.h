// Attention run as the executor runs it, for tests: a batch's work list, and a
// launch for each path that it takes.
#ifndef ENCODERD_TESTS_UNIT_ENGINE_DEVICE_CUDA_ATTENTION_RUNS_H_
#define ENCODERD_TESTS_UNIT_ENGINE_DEVICE_CUDA_ATTENTION_RUNS_H_

#include <vector>

#include "engine/device/cuda/host/attention_work.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {

struct AttentionCase {
  std::vector<int32_t> lengths;
  int32_t heads;
  int32_t head_size;
  float scale = 1.0f;  // of Q, K and V
  // Of the biases by distance, [heads, 2n-1] for sequences of up to n tokens;
  // n 0: none.
  int32_t bias_tokens = 0;
  uint32_t allowed = kAllAttentionPaths;
  // Each path over the whole list, empty entries at its end, as in a CUDA
  // graph.
  bool padded = false;
  Reach reach = {};

  int32_t bias_stride() const { return 2 * bias_tokens - 1; }
  int64_t tokens() const {
    int64_t tokens = 0;
    for (const int32_t length : lengths) tokens += length;
    return tokens;
  }
  int64_t hidden() const { return int64_t{heads} * head_size; }
  // The same for every run of a case.
  std::vector<float> Biases() const {
    if (bias_tokens == 0) return {};
    std::mt19937 random(9);
    return RandomValues(int64_t{heads} * bias_stride(), DType::kF32, &random,
                        2.0f);
  }
};

// context [T,H]; qkv [T,3H] holds values of `dtype`.
inline std::vector<float> RunAttention(const std::vector<float>& qkv,
                                       const AttentionCase& c, DType dtype) {
  std::vector<int32_t> ends{0};
  for (const int32_t length : c.lengths) ends.push_back(ends.back() + length);
  std::vector<AttentionWork> work(c.tokens() + 3);
  std::vector<int32_t> order;
  const AttentionCounts counts = ListAttentionWork(
      ends, {dtype, c.head_size, c.allowed}, &order, work.data());
  const OnCard on_card(qkv, dtype);
  const OnCard list = OnCard::Of(work);
  const bool biased = c.bias_tokens > 0;
  const OnCard biases(biased ? c.Biases() : std::vector<float>(1), DType::kF32);
  const OnCard context(c.tokens() * c.hidden() * DTypeBytes(dtype));
  AttentionOp op;
  op.qkv = on_card.View(c.tokens(), 3 * c.hidden(), dtype);
  op.heads = c.heads;
  op.head_size = c.head_size;
  if (biased) {
    op.bias = biases.as<float>() + c.bias_tokens - 1;
    op.bias_stride = c.bias_stride();
  }
  op.context = context.View(c.tokens(), c.hidden(), dtype);
  op.work = list.as<AttentionWork>();
  op.reach = c.reach;
  for (int32_t p = 0; p < kAttentionPaths; ++p) {
    op.path = static_cast<AttentionPath>(p);
    op.work_count = counts[p];
    if (c.padded && counts[p] > 0)
      op.work_count = static_cast<int64_t>(work.size());
    EXPECT_EQ(Start(op, nullptr), 0);
    if (!c.padded) op.work += counts[p];
  }
  return context.Values(dtype);
}

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_TESTS_UNIT_ENGINE_DEVICE_CUDA_ATTENTION_RUNS_H_
