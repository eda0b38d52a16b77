// What a library of matrix products offers: algorithms to choose from.
// cublaslt_products.cc and cutlass_products.cc are the real ones; tests put
// loops on the host behind it.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_ALGORITHMS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_ALGORITHMS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/device/cuda/products/products.h"

namespace encoderd {
namespace cuda {

// Opaque bytes of the library, good for its own version on one kind of card.
using Algorithm = std::string;

// An algorithm serves all counts of rows if it serves these.
inline constexpr int64_t kCheckedRows[] = {1, 7, 128, 1024, 8192, 24576};

class AlgorithmLibrary {
 public:
  virtual ~AlgorithmLibrary() = default;
  virtual std::string name() const = 0;  // "cuBLASLt 130000"
  // What its products may overwrite as they run (OpStream::workspace).
  virtual int64_t workspace_bytes() const { return 0; }
  // Algorithms without partial sums that the library offers for `rows` rows:
  // those without workspace, then those that take some of it, each in the
  // library's order; may be empty.
  // UNIMPLEMENTED: it has no such products.
  virtual absl::StatusOr<std::vector<Algorithm>> Candidates(
      const ProductArgs& args, int64_t rows) = 0;
  // OK when `algorithm`, bytes from anywhere, computes `args` at each of these
  // counts of rows, in that workspace and without partial sums;
  // INVALID_ARGUMENT when it does not; else the check itself failed.
  virtual absl::Status Check(const ProductArgs& args,
                             const Algorithm& algorithm,
                             absl::Span<const int64_t> rows) = 0;
  // With an algorithm of Candidates, or one that passed Check.
  virtual absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args, const Algorithm& algorithm) = 0;
  // For reports: "algorithm 66, tile 20, stages 36".
  virtual std::string Describe(const Algorithm& algorithm) const = 0;
};

// The library for the device that the calling thread uses.
using NewLibrary =
    std::function<absl::StatusOr<std::unique_ptr<AlgorithmLibrary>>()>;

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_ALGORITHMS_H_
