#include "tests/support/cuda/emulated_card.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {

std::shared_ptr<Runtime> TestRuntime() {
  static const auto runtime = std::make_shared<EmulatedRuntime>();
  return runtime;
}
std::unique_ptr<ProductFactory> TestProducts() {
  return std::make_unique<EmulatedProducts>();
}
std::unique_ptr<AlgorithmLibrary> TestLibrary() {
  return std::make_unique<EmulatedLibrary>();
}
bool IsEmulated() { return true; }

}  // namespace cuda
}  // namespace encoderd
