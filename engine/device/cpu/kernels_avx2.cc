// The kernels for AVX2; compiled with the flags of that instruction set.
#if defined(__AVX2__) && defined(__FMA__)
#define ENCODERD_ISA isa_avx2
#endif
#include "engine/device/cpu/kernels.h"

namespace encoderd {
namespace cpu {

#ifdef ENCODERD_ISA
const Kernels* Avx2Kernels(DType dtype) { return isa_avx2::TableOf<>(dtype); }
#else
const Kernels* Avx2Kernels(DType) { return nullptr; }
#endif

}  // namespace cpu
}  // namespace encoderd
