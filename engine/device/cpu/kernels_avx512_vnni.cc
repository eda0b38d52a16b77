// The 8-bit kernels for AVX512_VNNI with AVX512_BF16; compiled with the flags
// of both.
#include "engine/device/cpu/int8_kernels.h"

#if defined(__AVX512VNNI__) && defined(__AVX512BF16__)
#define ENCODERD_ISA isa_avx512_vnni
#include "engine/device/cpu/int8_kernel.h"
#endif

namespace encoderd {
namespace cpu {

#ifdef ENCODERD_ISA
const Int8Kernels* Avx512VnniKernels() {
  return &isa_avx512_vnni::kInt8Table<isa_avx512_vnni::BF16>;
}
#else
const Int8Kernels* Avx512VnniKernels() { return nullptr; }
#endif

}  // namespace cpu
}  // namespace encoderd
