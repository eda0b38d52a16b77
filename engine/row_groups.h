// Which sequences of a batch a layer computes together, so that their rows stay
// in a device's caches. Pure; internal to encoder_session.cc.
#ifndef ENCODERD_ENGINE_ROW_GROUPS_H_
#define ENCODERD_ENGINE_ROW_GROUPS_H_

#include <cstdint>

#include "engine/base/batch.h"

namespace encoderd {

// Whole sequences, first_sequence .. end_sequence - 1, and their rows.
struct RowGroup {
  int64_t first_sequence, end_sequence;
  int64_t first, rows;
};

// The sequences from `first_sequence` on whose rows lie in one row block
// (Executor::row_block), or the first alone. `batch_rows`: those of the batch
// and those that a device pads it with, which the last group has, too.
RowGroup RowGroupFrom(int64_t first_sequence, const PackedBatch& batch,
                      int64_t row_block, int64_t batch_rows);

// The most rows that a group can have, of batches of at most `tokens` in
// sequences of at most max_len.
int64_t MostRowsOfGroup(int64_t tokens, int64_t row_block, int64_t max_len);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_ROW_GROUPS_H_
