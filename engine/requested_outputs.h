// What the outputs of a batch ask of a pass. Pure; internal to
// encoder_session.cc.
#ifndef ENCODERD_ENGINE_REQUESTED_OUTPUTS_H_
#define ENCODERD_ENGINE_REQUESTED_OUTPUTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/base/batch.h"
#include "engine/base/forward_result.h"
#include "engine/device/model_sizes.h"

namespace encoderd {

// INTERNAL: another count than the batch has sequences, or a layer that the
// model lacks.
absl::Status CheckOutputs(const PackedBatch& batch,
                          absl::Span<const SequenceOutput> outputs,
                          int32_t num_layers);

bool WantsTableSum(absl::Span<const SequenceOutput> outputs);

// How many layers have to run.
int32_t LayersNeeded(absl::Span<const SequenceOutput> outputs,
                     int32_t num_layers);

// Sizes `result`, and clears its note.
void PlaceOutputs(const PackedBatch& batch,
                  absl::Span<const SequenceOutput> outputs,
                  const ModelSizes& sizes, ForwardResult* result);

// rows [B]: the one row of each sequence that its output needs of the last
// layer, 0 where it needs none. Empty where an output needs more.
void ListNeededRows(const PackedBatch& batch,
                    absl::Span<const SequenceOutput> outputs,
                    int32_t num_layers, std::vector<int32_t>* rows);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_REQUESTED_OUTPUTS_H_
