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
#include "engine/encoder_layers.h"
#include "engine/session.h"

namespace encoderd {

class Encoder {
 public:
  // Reads the weights layer by layer and prepares each on the device. Passes
  // errors of both through; DATA_LOSS for a layer that lacks a norm.
  static absl::StatusOr<std::unique_ptr<const Encoder>> Build(
      std::unique_ptr<Device> device, const ModelConfig& config,
      WeightSource* source);

  const Device& device() const { return *device_; }
  // For inspection: a copy on the host of the rows that the embedding block
  // adds or, where positions rotate, of RotationRows, of the first rotation;
  // zero rows: neither.
  const HostMatrix& position_rows() const { return position_rows_; }
  absl::StatusOr<std::unique_ptr<Session>> NewSession(
      const SessionOptions& options) const;

 private:
  Encoder(std::unique_ptr<Device> device, const IdLimits& limits);

  const std::unique_ptr<Device> device_;  // outlives the layers
  const IdLimits limits_;
  EncoderLayers layers_;
  // A copy: the device's table may be on a card and in fewer bits.
  HostMatrix position_rows_;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_ENCODER_H_
