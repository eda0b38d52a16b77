// products.h by CUTLASS: the feed-forward-in product with bias and erf GELU
// in its epilogue (cutlass_gelu.h), for cards of compute capability 9.0. The
// build has its kernels where ENCODERD_CUTLASS found the headers.
//
// An Algorithm is a tile's name. All have a row's bits depend on that row
// alone; that they also agree with each other is not promised.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUTLASS_PRODUCTS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUTLASS_PRODUCTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/device/cuda/products/algorithms.h"
#include "engine/device/cuda/products/cutlass_gelu.h"
#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

// For `card`, which the calling thread uses. UNIMPLEMENTED, saying why, on
// other cards and in a build without CUTLASS.
absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> NewCutlassLibrary(
    const Card& card);

// What a build and a card bring to it.
struct CutlassParts {
  std::string version;                            // of CUTLASS: "4.2.0"
  std::vector<CutlassGeluTile> tiles;             // the first choice first
  int32_t processors = 0;                         // the card's multiprocessors
  std::string (*error_text)(int code) = nullptr;  // a runtime's code in words
};
// The same over any parts: NewCutlassLibrary's, or those of tests.
absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> NewCutlassLibraryOf(
    const Card& card, CutlassParts parts);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUTLASS_PRODUCTS_H_
