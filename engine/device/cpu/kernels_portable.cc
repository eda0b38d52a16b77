// The kernels for any CPU of the target architecture.
#define ENCODERD_ISA isa_portable
#include "engine/device/cpu/kernels.h"

namespace encoderd {
namespace cpu {

const Kernels* PortableKernels(DType dtype) {
  return isa_portable::TableOf<>(dtype);
}

}  // namespace cpu
}  // namespace encoderd
