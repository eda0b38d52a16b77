// The float kernels for any CPU of the target architecture.
#define ENCODERD_ISA isa_portable
#include "engine/device/cpu/kernels.h"

namespace encoderd {
namespace cpu {

const Kernels* PortableKernels() {
  return &isa_portable::kTable<isa_portable::F32, isa_portable::MultiplyAddF32>;
}

}  // namespace cpu
}  // namespace encoderd
