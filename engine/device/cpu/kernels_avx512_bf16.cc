// The bf16 kernels, for CPUs with AVX512_BF16; compiled with its flags.
#define ENCODERD_ISA isa_avx512_bf16
#include "engine/device/cpu/kernels.h"

#if defined(__AVX512BF16__)
#include "engine/device/cpu/attention_kernel.h"
#include "engine/device/cpu/element_wise_kernel.h"
#include "engine/device/cpu/layer_norm_kernel.h"

namespace encoderd {
namespace cpu {

const Kernels* Avx512Bf16Kernels() {
  using namespace isa_avx512_bf16;  // NOLINT: this file is that namespace
  static constexpr Kernels kKernels = {
      true,
      Embed<BF16>,
      AddLayerNorm<BF16>,
      MapElementWise<BF16>,
      AttentionScratchBytes<BF16>,
      Attention<BF16, MultiplyAddBF16>,
      ToFloat<BF16>,
      nullptr,
      nullptr,
      nullptr,
  };
  return &kKernels;
}

}  // namespace cpu
}  // namespace encoderd
#else
namespace encoderd {
namespace cpu {
const Kernels* Avx512Bf16Kernels() { return nullptr; }
}  // namespace cpu
}  // namespace encoderd
#endif
