// Runs the tests on card 0. Where CUDA counts no card it says so, runs nothing
// and exits with 77, which ctest shows as skipped; a card that does not open is
// a failure.
#include <unistd.h>

#include <cstdio>

#include "engine/device/cuda/host/cudart_runtime.h"
#include "engine/device/cuda/products/cublaslt_products.h"
#include "engine/device/cuda/products/tuned_products.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {

std::shared_ptr<Runtime> TestRuntime() {
  static const std::shared_ptr<Runtime> runtime = NewCudartRuntime();
  return runtime;
}
std::unique_ptr<ProductFactory> TestProducts() {
  return std::make_unique<TunedProducts>(
      TestLibrary(), std::make_shared<TuningStore>("", TunedFor()),
      TestRuntime(), 0);
}
std::unique_ptr<AlgorithmLibrary> TestLibrary() {
  return NewCublasLtLibrary().value();
}
bool IsEmulated() { return false; }
std::unique_ptr<Device> OpenProvenCard(const std::string& dtype,
                                       const std::string& operands) {
  return OpenCuda({0}, dtype, /*tuning_folder=*/"", operands).value();
}

namespace {

// Of cudaGetDeviceCount.
constexpr int kNoDevice = 100;
constexpr int kNoOrOldDriver = 35;

bool HasNoCard() {
  int32_t count = 0;
  const int code = TestRuntime()->CountDevices(&count);
  if (code == kNoOrOldDriver) return access("/dev/nvidiactl", F_OK) != 0;
  return code == kNoDevice || (code == 0 && count == 0);
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const auto opened = encoderd::cuda::OpenCuda({0}, "auto", "");
  if (!opened.ok()) {
    const bool skipped = encoderd::cuda::HasNoCard();
    std::printf("%s: %s\n", skipped ? "NOT RUN, needs a card" : "FAILED",
                std::string(opened.status().message()).c_str());
    return skipped ? 77 : 1;
  }
  std::printf("on %s\n", (*opened)->name().c_str());
  return RUN_ALL_TESTS();
}
