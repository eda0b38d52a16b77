#include "engine/requested_outputs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/pooling.h"

namespace encoderd {
namespace {

bool IsPooled(const SequenceOutput& output) {
  return output.kind == SequenceOutput::Kind::kPooled;
}

int64_t Length(const PackedBatch& batch, size_t b) {
  return batch.cu_seqlens[b + 1] - batch.cu_seqlens[b];
}

// The row of the last layer's [length,H] that `output` needs; less than 0: all.
int64_t RowNeeded(const SequenceOutput& output, int64_t length,
                  int32_t num_layers) {
  if (IsPooled(output)) return PooledRow(output.pooling, length);
  return output.layer == num_layers ? -1 : 0;
}

}  // namespace

absl::Status CheckOutputs(const PackedBatch& batch,
                          absl::Span<const SequenceOutput> outputs,
                          int32_t num_layers) {
  if (static_cast<int64_t>(outputs.size()) != batch.num_sequences()) {
    return absl::InternalError(
        absl::StrCat("a batch of ", batch.num_sequences(), " sequences with ",
                     outputs.size(), " outputs"));
  }
  for (const SequenceOutput& output : outputs) {
    if (!IsPooled(output) &&
        (output.layer < kTableSum || output.layer > num_layers)) {
      return absl::InternalError(
          absl::StrCat("layer ", output.layer,
                       " is requested; this model has 0 to ", num_layers));
    }
  }
  return absl::OkStatus();
}

bool WantsTableSum(absl::Span<const SequenceOutput> outputs) {
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const SequenceOutput& output) {
                       return !IsPooled(output) && output.layer == kTableSum;
                     });
}

int32_t LayersNeeded(absl::Span<const SequenceOutput> outputs,
                     int32_t num_layers) {
  int32_t needed = 0;
  for (const SequenceOutput& output : outputs)
    needed = std::max(needed, IsPooled(output) ? num_layers : output.layer);
  return needed;
}

void PlaceOutputs(const PackedBatch& batch,
                  absl::Span<const SequenceOutput> outputs,
                  const ModelSizes& sizes, ForwardResult* result) {
  int64_t end = 0;
  result->offsets.clear();
  result->offsets.push_back(0);
  for (size_t b = 0; b < outputs.size(); ++b) {
    const bool pooled = IsPooled(outputs[b]);
    const bool of_tables = !pooled && outputs[b].layer == kTableSum;
    end += (pooled ? 1 : Length(batch, b)) *
           (of_tables ? sizes.table_columns() : sizes.hidden_size);
    result->offsets.push_back(end);
  }
  result->values.resize(end);
  result->note.clear();
}

void ListNeededRows(const PackedBatch& batch,
                    absl::Span<const SequenceOutput> outputs,
                    int32_t num_layers, std::vector<int32_t>* rows) {
  rows->clear();
  for (size_t b = 0; b < outputs.size(); ++b) {
    const int64_t row = RowNeeded(outputs[b], Length(batch, b), num_layers);
    if (row < 0) {
      rows->clear();
      return;
    }
    rows->push_back(static_cast<int32_t>(row));
  }
}

}  // namespace encoderd
