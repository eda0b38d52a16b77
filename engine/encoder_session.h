// The forward pass: embedding block, layers, pooling, on one Executor.
#ifndef ENCODERD_ENGINE_ENCODER_SESSION_H_
#define ENCODERD_ENGINE_ENCODER_SESSION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/base/batch.h"
#include "engine/device/device.h"
#include "engine/encoder_layers.h"
#include "engine/session.h"

namespace encoderd {

// A Session (session.h has its contract) over `layers`, which it borrows, as
// it does `device`. Allocates all its memory here: RESOURCE_EXHAUSTED if it is
// unavailable.
absl::StatusOr<std::unique_ptr<Session>> NewEncoderSession(
    const Device& device, const EncoderLayers& layers, const IdLimits& limits,
    const SessionOptions& options);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_ENCODER_SESSION_H_
