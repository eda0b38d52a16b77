#include "engine/row_groups.h"

#include <algorithm>
#include <vector>

namespace encoderd {

RowGroup RowGroupFrom(int64_t first_sequence, const PackedBatch& batch,
                      int64_t row_block, int64_t batch_rows) {
  const std::vector<int32_t>& begins = batch.cu_seqlens;
  const int32_t first = begins[first_sequence];
  int64_t end = first_sequence + 1;
  while (end < batch.num_sequences() && begins[end + 1] - first <= row_block)
    ++end;
  const int64_t end_row =
      end < batch.num_sequences() ? begins[end] : batch_rows;
  return {first_sequence, end, first, end_row - first};
}

int64_t MostRowsOfGroup(int64_t tokens, int64_t row_block, int64_t max_len) {
  return std::min(tokens, std::max(row_block, max_len));
}

}  // namespace encoderd
