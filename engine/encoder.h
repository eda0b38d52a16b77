// The encoder stack: embedding block, L layers, pooling; one forward pass
// written once for every device.
//
// Constant after Build and shared by its Sessions, which it must outlive.
#ifndef ENCODERD_ENGINE_ENCODER_H_
#define ENCODERD_ENGINE_ENCODER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/base/batch.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/device/device.h"
#include "engine/session.h"

namespace encoderd {

class Encoder {
 public:
  // Reads the weights layer by layer and prepares each on the device. Passes
  // errors of both through.
  static absl::StatusOr<std::unique_ptr<const Encoder>> Build(
      std::unique_ptr<Device> device, const ModelConfig& config,
      const IdLimits& limits, WeightSource* source);
  virtual ~Encoder() = default;

  virtual const Device& device() const = 0;
  // A copy on the host of the rows that the embedding block adds, for looking
  // at; zero rows: none.
  virtual const HostMatrix& position_rows() const = 0;
  virtual absl::StatusOr<std::unique_ptr<Session>> NewSession(
      const SessionOptions& options) const = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_ENCODER_H_
