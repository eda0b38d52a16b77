#include "engine/device/cuda/host/open_cards.h"
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
std::unique_ptr<Device> OpenProvenCard(const std::string& dtype,
                                       const std::string& operands) {
  CardLibraries libraries;
  libraries.plain = [] { return TestLibrary(); };
  CardOptions options;
  options.dtype = dtype;
  options.operands = operands;
  options.most_tuned_rows = 32;  // loops compute them
  return OpenCards(TestRuntime(), libraries, {0}, options).value();
}

}  // namespace cuda
}  // namespace encoderd
