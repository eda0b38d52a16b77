// The float kernels for Avx2; compiled with the flags of that instruction set.
#define ENCODERD_ISA isa_avx2
#include "engine/device/cpu/kernels.h"

#if defined(__AVX2__) && defined(__FMA__)
#include "engine/device/cpu/attention_kernel.h"
#include "engine/device/cpu/element_wise_kernel.h"
#include "engine/device/cpu/layer_norm_kernel.h"
#include "engine/device/cpu/product_kernel.h"

namespace encoderd {
namespace cpu {

const Kernels* Avx2Kernels() {
  using namespace isa_avx2;  // NOLINT: this file is that namespace
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
const Kernels* Avx2Kernels() { return nullptr; }
}  // namespace cpu
}  // namespace encoderd
#endif
