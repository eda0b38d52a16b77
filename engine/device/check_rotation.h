// What a Device requires of the tables of a rotation.
#ifndef ENCODERD_ENGINE_DEVICE_CHECK_ROTATION_H_
#define ENCODERD_ENGINE_DEVICE_CHECK_ROTATION_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/base/tensor.h"
#include "engine/device/model_sizes.h"

namespace encoderd {

// INVALID_ARGUMENT: cos and sin differ in shape, or have more pairs than half
// of a head of `sizes`; no heads: they are not known.
inline absl::Status CheckRotation(const HostMatrix& cos, const HostMatrix& sin,
                                  const ModelSizes& sizes) {
  if (cos.rows != sin.rows || cos.cols != sin.cols) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a rotation's cosines are [", cos.rows, ",", cos.cols, "], its sines [",
        sin.rows, ",", sin.cols, "]; both must have one shape"));
  }
  if (2 * cos.cols * sizes.num_attention_heads > sizes.hidden_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a rotation of ", cos.cols, " pairs; a head of ", sizes.head_size(),
        " columns has at most ", sizes.head_size() / 2));
  }
  return absl::OkStatus();
}

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CHECK_ROTATION_H_
