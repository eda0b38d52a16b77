// The float kernels for Portable; compiled with the flags of that instruction
// set.
#define ENCODERD_ISA isa_portable
#include "engine/device/cpu/kernels.h"

#if 1
#include "engine/device/cpu/attention_kernel.h"
#include "engine/device/cpu/element_wise_kernel.h"
#include "engine/device/cpu/layer_norm_kernel.h"
#include "engine/device/cpu/product_kernel.h"

namespace encoderd {
namespace cpu {

const Kernels* PortableKernels() {
  using namespace isa_portable;  // NOLINT: this file is that namespace
  static constexpr Kernels kKernels = {
      false,
      Embed<F32>,
      AddLayerNorm<F32>,
      MapElementWise<F32>,
      AttentionScratchBytes<F32>,
      Attention<F32, MultiplyAddF32>,
      ToFloat<F32>,
      PackedFloats,
      PackWeights,
      Product,
  };
  return &kKernels;
}

}  // namespace cpu
}  // namespace encoderd
#else
namespace encoderd {
namespace cpu {
const Kernels* PortableKernels() { return nullptr; }
}  // namespace cpu
}  // namespace encoderd
#endif
