// Products in 8 bits for AVX512_VNNI; compiled with the flags of that
// instruction set.
#if defined(__AVX512VNNI__)
#define ENCODERD_ISA isa_avx512_vnni
#include "engine/device/cpu/int8_kernel.h"
#else
#include "engine/device/cpu/kernels.h"
#endif

namespace encoderd {
namespace cpu {

#ifdef ENCODERD_ISA
const ProductKernels* Avx512VnniProducts() {
  return &isa_avx512_vnni::kInt8Products<isa_avx512_vnni::BF16>;
}
#else
const ProductKernels* Avx512VnniProducts() { return nullptr; }
#endif

}  // namespace cpu
}  // namespace encoderd
