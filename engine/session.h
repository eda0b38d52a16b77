// One forward pass at a time over packed batches, on one device.
//
// A Session owns everything that a pass needs (scratch memory, a thread's worth
// of compute, a device's stream); nothing is global. Memory is taken once for
// max_batch_tokens and never grows while serving. Thread rule: one call of Run
// at a time; different Sessions of one Model run in parallel.
#ifndef ENCODERD_ENGINE_SESSION_H_
#define ENCODERD_ENGINE_SESSION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/base/batch.h"
#include "engine/base/forward_result.h"
#include "engine/base/pauses.h"

namespace encoderd {

struct SessionOptions {
  // 0: the device's own choice; raised to max_len if smaller.
  int64_t max_batch_tokens = 0;
  // Most tokens of a sequence; 0, or more than the model's: the model's.
  int32_t max_len = 0;
  // Runs in the pauses of other Sessions only, so it counts for no core.
  bool in_pauses = false;
};

class Session {
 public:
  virtual ~Session() = default;

  // Most tokens of one batch; at least the longest sequence that it takes.
  virtual int64_t max_batch_tokens() const = 0;
  // Bytes of the host's memory that it has taken for its passes and that become
  // resident only as batches need them, without those of the helper threads
  // that all passes share. 0 on a GPU.
  virtual int64_t scratch_bytes() const = 0;

  // outputs [B], one for each sequence. The bits of a sequence's output depend
  // on its own ids and output spec only, never on the other sequences of the
  // batch. INTERNAL: a device fault (kDataLoss: the device is lost and every
  // later call fails too). A batch over max_batch_tokens or an id outside a
  // table is refused with INTERNAL before compute: callers validate first.
  virtual absl::Status Run(const PackedBatch& batch,
                           absl::Span<const SequenceOutput> outputs,
                           ForwardResult* result) = 0;

  // Sets the pauses of all later passes; `pauses` must outlive them; null:
  // none. A device that does not compute on the thread of Run ignores them
  // (Device::pauses).
  virtual void SetPauses(Pauses* pauses) {}
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_SESSION_H_
