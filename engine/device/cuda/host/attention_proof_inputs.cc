#include "engine/device/cuda/host/attention_proof_inputs.h"

#include <algorithm>
#include <cmath>

#include "engine/io/half_floats.h"

namespace encoderd {
namespace cuda {
namespace {

std::vector<int32_t> Lengths(AttentionPath path) {
  if (path == AttentionPath::kWarp) return {1, 2, 15, 16};
  if (path == AttentionPath::kWhole64) return {17, 31, 63, 64};
  return {65, 100, 127, 128};
}

// What no compiler or library changes.
class Random {
 public:
  uint32_t Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 33);
  }
  // +-(1 + n/128) 2^e with e from `least` to `most`: of 8 bits, so exact in
  // bf16 and, within its range, in fp16.
  float Value(int32_t least, int32_t most) {
    const auto spread = static_cast<uint32_t>(most - least + 1);
    const auto exponent = static_cast<int32_t>(Next() % spread) + least;
    const auto fraction = static_cast<float>(Next() % 128) / 128.0f;
    const float size = std::ldexp(1.0f + fraction, exponent);
    return Next() % 2 == 0 ? size : -size;
  }

 private:
  uint64_t state_ = 1;
};

void FillValues(DType element, AttentionProofInputs* inputs) {
  Random random;
  for (int32_t row = 0; row < inputs->tokens(); ++row) {
    // Softmax over nearly equal scores, over some, over one that is far ahead;
    // the last the more often as some keys are large.
    constexpr int32_t kQueries[] = {-8, 0, 3, 6};
    const int32_t query = kQueries[row % 4];
    const int32_t key = row % 7 == 3 ? 2 : 0;
    for (int64_t c = 0; c < 3 * inputs->hidden; ++c) {
      const float value = c < inputs->hidden ? random.Value(query - 6, query)
                          : c < 2 * inputs->hidden ? random.Value(key - 6, key)
                                                   : random.Value(-10, 5);
      inputs->qkv.push_back(element == DType::kF16 ? NarrowToHalf(value)
                                                   : NarrowToBf16(value));
    }
  }
  inputs->bias_stride = 2 * inputs->lengths.back() - 1;
  for (int32_t i = 0; i < inputs->heads * inputs->bias_stride; ++i)
    inputs->bias.push_back(random.Value(-6, 2));
}

}  // namespace

AttentionProofInputs MakeAttentionProofInputs(DType element, int32_t head_size,
                                              int32_t heads,
                                              AttentionPath path) {
  AttentionProofInputs inputs;
  // A block of kWarp takes four, of any other one.
  inputs.heads = std::min(heads, path == AttentionPath::kWarp ? 5 : 2);
  inputs.hidden = int64_t{inputs.heads} * head_size;
  inputs.lengths = Lengths(path);
  for (const int32_t length : inputs.lengths)
    inputs.ends.push_back(inputs.ends.back() + length);
  FillValues(element, &inputs);

  std::vector<int32_t> order;
  inputs.work.resize(3 * inputs.tokens());
  AttentionWork* end = inputs.work.data();
  ListAttentionWork(inputs.ends, {element, head_size}, &order, end);
  end += inputs.sequences();
  const AttentionCounts counts =
      ListAttentionWork(inputs.ends, {element, head_size, 0}, &order, end);
  inputs.general_work = counts[static_cast<size_t>(AttentionPath::kGeneral)];
  end += inputs.general_work;
  for (const int32_t length : inputs.lengths) *end++ = {0, length, 0, path};
  inputs.work.resize(end - inputs.work.data());
  return inputs;
}

}  // namespace cuda
}  // namespace encoderd
