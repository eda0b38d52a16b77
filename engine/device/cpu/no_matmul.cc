// In the place of matmul.cc where there is no AVX-512, and so no use for
// oneDNN: on every architecture but x86-64.
#include "engine/device/cpu/product.h"

namespace encoderd {
namespace cpu {

// Not reached: OpenCpu asks for it with kernels of AVX-512 alone.
std::unique_ptr<ProductFactory> OneDnnProducts(DType dtype) { return nullptr; }

}  // namespace cpu
}  // namespace encoderd
