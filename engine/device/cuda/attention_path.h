// Which kernel of attention takes a sequence. A function of the element, the
// head size and the sequence's own length, so that a sequence has the same bits
// in any batch. Pure.
//
// kWarp takes up to 16 tokens, kWhole64 17 to 64, kWhole128 65 to 128 (where
// Q, K and V of a head lie within 48 KiB: head sizes up to 64); each a 16-bit
// element. kGeneral takes any.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_ATTENTION_PATH_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_ATTENTION_PATH_H_

#include <cstdint>

#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {

constexpr uint32_t PathBit(AttentionPath path) {
  return 1u << static_cast<int32_t>(path);
}
// A set of paths by PathBit. The general one is always allowed.
constexpr uint32_t kAllAttentionPaths = (1u << kAttentionPaths) - 1;

// Tokens of the longest sequence of a path, but for the general one.
constexpr int32_t PathTokens(AttentionPath path) {
  switch (path) {
    case AttentionPath::kWarp:
      return 16;
    case AttentionPath::kWhole64:
      return 64;
    case AttentionPath::kWhole128:
      return 128;
    case AttentionPath::kGeneral:
      break;
  }
  return INT32_MAX;
}

// Whether a path has a kernel for these at all.
constexpr bool HasPath(DType element, int32_t head_size, AttentionPath path) {
  if (path == AttentionPath::kGeneral) return true;
  return element != DType::kF32 &&
         (path != AttentionPath::kWhole128 || head_size <= 64);
}

constexpr AttentionPath PathOf(DType element, int32_t head_size, int32_t length,
                               uint32_t allowed) {
  AttentionPath path = AttentionPath::kWarp;
  if (length > PathTokens(path)) path = AttentionPath::kWhole64;
  if (length > PathTokens(path)) path = AttentionPath::kWhole128;
  if (length > PathTokens(path)) path = AttentionPath::kGeneral;
  return HasPath(element, head_size, path) && (allowed & PathBit(path)) != 0
             ? path
             : AttentionPath::kGeneral;
}

// The rule of one model on one device.
struct AttentionRule {
  DType element = DType::kF32;
  int32_t head_size = 0;
  uint32_t allowed = kAllAttentionPaths;

  constexpr AttentionPath Of(int32_t length) const {
    return PathOf(element, head_size, length, allowed);
  }
  // Entries of a sequence in the work list; none of an empty one.
  constexpr int64_t Entries(int32_t length) const {
    if (length == 0) return 0;
    const int32_t queries = AttentionQueries(element);
    return Of(length) == AttentionPath::kGeneral
               ? (length + queries - 1) / queries
               : 1;
  }
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_ATTENTION_PATH_H_
