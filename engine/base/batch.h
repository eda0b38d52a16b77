// The packed batch: sequences end to end, no padding anywhere.
//
// token_ids [T], segment_ids [T], position_ids [T], cu_seqlens [B+1]; sequence
// b owns the tokens cu_seqlens[b] .. cu_seqlens[b+1]-1. Position ids are
// explicit. Every id is checked before (ValidateSequence), so a device never
// sees an index that its table lacks.
#ifndef ENCODERD_ENGINE_BASE_BATCH_H_
#define ENCODERD_ENGINE_BASE_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace encoderd {

// One input, ready for the model, special tokens included.
struct TokenSequence {
  std::vector<int32_t> token_ids;     // [n]
  std::vector<int32_t> segment_ids;   // [n], or empty: all 0
  std::vector<int32_t> position_ids;  // [n], or empty: offset, offset+1, ...
                                      // (see IdLimits::position_offset)

  int64_t size() const { return static_cast<int64_t>(token_ids.size()); }
};

// What a model's tables can hold. Rows are counts: the largest valid id is rows
// - 1.
struct IdLimits {
  int32_t token_rows = 0;
  int32_t segment_rows =
      0;  // 0: a model without segments; only segment id 0 is accepted
  int32_t position_rows = 0;
  // First default position id. RoBERTa family: padding_idx + 1; there the token
  // padding_idx itself, if an input contains it, takes the position
  // padding_idx, and the following tokens count on as if it were missing.
  int32_t position_offset = 0;
  int32_t max_len = 0;  // most tokens of one input, special tokens included
};

// OK, or INVALID_ARGUMENT with an ErrorDetail. Reasons: EMPTY_INPUT;
// INPUT_TOO_LONG (token_count, max_tokens); SEGMENT_IDS_LENGTH /
// POSITION_IDS_LENGTH (count, token_count); TOKEN_ID_OUT_OF_RANGE,
// SEGMENT_ID_OUT_OF_RANGE, POSITION_ID_OUT_OF_RANGE (index, id, limit: ids must
// be < limit).
absl::Status ValidateSequence(const TokenSequence& sequence,
                              const IdLimits& limits);

struct PackedBatch {
  std::vector<int32_t> token_ids;     // [T]
  std::vector<int32_t> segment_ids;   // [T]
  std::vector<int32_t> position_ids;  // [T]
  std::vector<int32_t> cu_seqlens{
      0};  // [B+1], starts at 0, strictly increasing, ends at T
  int32_t max_seqlen = 0;

  int64_t num_tokens() const { return static_cast<int64_t>(token_ids.size()); }
  int64_t num_sequences() const {
    return static_cast<int64_t>(cu_seqlens.size()) - 1;
  }

  // Appends a sequence that ValidateSequence accepted; fills default segments
  // and positions.
  void Append(const TokenSequence& sequence, const IdLimits& limits);
  // Append needs no memory up to these totals. Throws std::bad_alloc.
  void Reserve(int64_t tokens, int64_t sequences);
  void Clear();
};

// The invariants above and every id against `limits`; INTERNAL when broken (a
// bug of the caller).
absl::Status ValidateBatch(const PackedBatch& batch, const IdLimits& limits);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_BASE_BATCH_H_
