// Products in 8 bits for AVX512_VNNI with AVX512_BF16, which rounds to bf16 in
// one instruction; compiled with the flags of both.
#if defined(__AVX512VNNI__) && defined(__AVX512BF16__)
#define ENCODERD_ISA isa_avx512_vnni_bf16
#include "engine/device/cpu/int8_kernel.h"
#else
#include "engine/device/cpu/kernels.h"
#endif

namespace encoderd {
namespace cpu {

#ifdef ENCODERD_ISA
const ProductKernels* Avx512VnniBf16Products() {
  return &isa_avx512_vnni_bf16::kInt8Products<isa_avx512_vnni_bf16::BF16>;
}
#else
const ProductKernels* Avx512VnniBf16Products() { return nullptr; }
#endif

}  // namespace cpu
}  // namespace encoderd
