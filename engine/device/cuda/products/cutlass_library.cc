// The compiled tiles and the card behind cutlass_products.
#include <cuda_runtime_api.h>
#include <cutlass/version.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/device/cuda/products/cutlass_products.h"

namespace encoderd {
namespace cuda {
namespace {

std::string ErrorText(int code) {
  const auto error = static_cast<cudaError_t>(code);
  return absl::StrCat(cudaGetErrorString(error), " (", cudaGetErrorName(error),
                      ")");
}

}  // namespace

absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> NewCutlassLibrary(
    const Card& card) {
  CutlassParts parts;
  parts.version =
      absl::StrCat(CUTLASS_MAJOR, ".", CUTLASS_MINOR, ".", CUTLASS_PATCH);
  parts.tiles = {CutlassGelu128x192(), CutlassGelu128x128(),
                 CutlassGelu64x128()};
  parts.error_text = &ErrorText;
  parts.processors = card.multiprocessors;
  return NewCutlassLibraryOf(card, std::move(parts));
}

}  // namespace cuda
}  // namespace encoderd
