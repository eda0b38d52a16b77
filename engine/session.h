// One forward pass at a time over packed batches, on one device.
//
// A Session owns everything that a pass needs (scratch memory, a thread's worth
// of compute, later a stream); nothing is global. Memory is taken once for
// max_batch_tokens and never grows while serving. Thread rule: one call of Run
// at a time; different Sessions of one Model run in parallel.
#ifndef ENCODERD_ENGINE_SESSION_H_
#define ENCODERD_ENGINE_SESSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/batch.h"
#include "engine/pooling.h"

namespace encoderd {

// Layer of SequenceOutput: the sum of the table rows before the embedding
// block's LayerNorm.
inline constexpr int32_t kTableSum = -1;

// What one sequence of a batch is to give.
struct SequenceOutput {
  enum class Kind {
    kPooled,  // [H]: the last layer pooled, then normalised if asked
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
};

// Results of a batch, in order; reused from call to call without new
// allocations.
struct ForwardResult {
  std::vector<float> values;
  std::vector<int64_t> offsets;  // [B+1] into values
  // For the log; mostly empty: what the device has found out about itself.
  std::string note;

  absl::Span<const float> Output(int64_t b) const {
    return absl::Span<const float>(values).subspan(offsets[b],
                                                   offsets[b + 1] - offsets[b]);
  }
};

struct SessionOptions {
  int64_t max_batch_tokens =
      0;  // 0: the device's own choice; raised to max_len if smaller
};

class Session {
 public:
  virtual ~Session() = default;

  // Most tokens of one batch; at least the model's max_len.
  virtual int64_t max_batch_tokens() const = 0;

  // outputs [B], one for each sequence. The bits of a sequence's output depend
  // on its own ids and output spec only, never on the other sequences of the
  // batch. INTERNAL: a device fault (kDataLoss: the device is lost and every
  // later call fails too). A batch over max_batch_tokens or an id outside a
  // table is refused with INTERNAL before compute: callers validate first.
  virtual absl::Status Run(const PackedBatch& batch,
                           absl::Span<const SequenceOutput> outputs,
                           ForwardResult* result) = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_SESSION_H_
