// The real runtime and the real products behind cuda_device.
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/device/cuda/cublaslt_products.h"
#include "engine/device/cuda/cuda_device.h"
#include "engine/device/cuda/cudart_runtime.h"

namespace encoderd {
namespace cuda {

absl::StatusOr<std::unique_ptr<Device>> OpenCuda(int32_t ordinal,
                                                 const std::string& dtype) {
  const std::shared_ptr<Runtime> runtime = NewCudartRuntime();
  int32_t count = 0;
  const int code = runtime->CountDevices(&count);
  if (code != 0 || count == 0) {
    return absl::UnavailableError(
        absl::StrCat("no CUDA device: ",
                     code == 0 ? "none is visible" : runtime->ErrorText(code)));
  }
  // cuBLASLt's handle is of the device in use; NewCudaDevice names one that is
  // not there.
  if (ordinal >= 0 && ordinal < count) {
    const int used = runtime->UseDevice(ordinal);
    if (used != 0) {
      return absl::UnavailableError(
          absl::StrCat("cuda:", ordinal, ": ", runtime->ErrorText(used)));
    }
  }
  absl::StatusOr<std::unique_ptr<ProductFactory>> products =
      NewCublasLtProducts();
  if (!products.ok()) return products.status();
  return NewCudaDevice(runtime, *std::move(products), ordinal, dtype);
}

}  // namespace cuda
}  // namespace encoderd
