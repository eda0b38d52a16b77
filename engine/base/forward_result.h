// What the sequences of a batch ask for, and the results of a pass. Plain
// values.
#ifndef ENCODERD_ENGINE_BASE_FORWARD_RESULT_H_
#define ENCODERD_ENGINE_BASE_FORWARD_RESULT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/kinds.h"

namespace encoderd {

// Layer of SequenceOutput: the sum of the table rows before the embedding
// block's LayerNorm.
inline constexpr int32_t kTableSum = -1;

// What one sequence of a batch asks for.
struct SequenceOutput {
  enum class Kind {
    kPooled,  // [H]: the last layer pooled, then normalized if asked
    kStates,  // [n,H]: the token states of `layer`; kTableSum: [n,E]
  };
  Kind kind = Kind::kPooled;
  Pooling pooling = Pooling::kMean;
  bool normalize = false;
  // kStates: l = the output of encoder layer l; 0 = what the first layer reads,
  // the embedding block's own output: after its LayerNorm and, where the tables
  // have other columns than the layers (ELECTRA, ALBERT), after the projection
  // to H (hidden_states[0] of transformers); or kTableSum.
  int32_t layer = 0;

  bool operator==(const SequenceOutput&) const = default;
};

// Results of a batch, in order; reused from call to call without new
// allocations.
struct ForwardResult {
  std::vector<float> values;
  std::vector<int64_t> offsets;  // [B+1] into values
  // For the log; usually empty: what the device found out about itself.
  std::string note;

  absl::Span<const float> Output(int64_t b) const {
    return absl::Span<const float>(values).subspan(offsets[b],
                                                   offsets[b + 1] - offsets[b]);
  }
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_BASE_FORWARD_RESULT_H_
