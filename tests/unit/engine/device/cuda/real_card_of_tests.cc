// Runs the tests on card 0. Where none is there it says so, runs nothing and
// exits with 77, which ctest shows as skipped.
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

}  // namespace cuda
}  // namespace encoderd

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const auto opened = encoderd::cuda::OpenCuda({0}, "auto", "");
  if (!opened.ok()) {
    std::printf("NOT RUN, needs a card: %s\n",
                std::string(opened.status().message()).c_str());
    return 77;
  }
  std::printf("on %s\n", (*opened)->name().c_str());
  return RUN_ALL_TESTS();
}
