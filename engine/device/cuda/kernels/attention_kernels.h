// What all kernels of attention share, and those for 16-bit elements, T being
// Half or Bf16; attention_float.cu has float, and chooses.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_ATTENTION_KERNELS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_ATTENTION_KERNELS_H_

#include "engine/device/cuda/kernels/primitives.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {

// What a kernel of attention is compiled for: neither bias nor bounds of reach,
// a bias, or bounds with a bias where there is one.
enum class Form { kPlain, kBiased, kReached };

inline Form FormOf(const AttentionOp& op) {
  if (op.reach.left >= 0 || op.reach.right >= 0) return Form::kReached;
  return op.bias == nullptr ? Form::kPlain : Form::kBiased;
}

// Calls launch.template operator()<kForm>().
template <typename LaunchWith>
int WithForm(const AttentionOp& op, const LaunchWith& launch) {
  switch (FormOf(op)) {
    case Form::kBiased:
      return launch.template operator()<Form::kBiased>();
    case Form::kReached:
      return launch.template operator()<Form::kReached>();
    case Form::kPlain:
      break;
  }
  return launch.template operator()<Form::kPlain>();
}

// Whether a query sees the key `distance` further on.
ENCODERD_DEVICE bool Sees(const Reach& reach, int32_t distance) {
  return (reach.left < 0 || -distance <= reach.left) &&
         (reach.right < 0 || distance <= reach.right);
}

// Keys first .. end-1 of a sequence: all that any of `queries` queries from
// `query` on sees. Each of them sees one of the first `queries` keys, at least:
// the earliest it sees is no more than that many past `first`.
struct KeyRange {
  int32_t first;
  int32_t end;
};
template <Form kForm>
ENCODERD_DEVICE KeyRange KeysSeen(const Reach& reach, int32_t query,
                                  int32_t queries, int32_t length) {
  KeyRange keys = {0, length};
  if constexpr (kForm == Form::kReached) {
    if (reach.left >= 0 && query > reach.left) keys.first = query - reach.left;
    // A reach may be as long as an int32_t is.
    if (reach.right >= 0 && reach.right < length - query - queries)
      keys.end = query + queries + reach.right;
  }
  return keys;
}

// The general path.
template <typename T>
int Attention16(const AttentionOp& op, const OpStream& stream);

// kPath: any other.
template <AttentionPath kPath, typename T>
int AttentionWhole(const AttentionOp& op, const OpStream& stream);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_ATTENTION_KERNELS_H_
