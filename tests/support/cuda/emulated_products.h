// Matrix products on the host, behind products.h and algorithms.h.
#ifndef ENCODERD_TESTS_SUPPORT_CUDA_EMULATED_PRODUCTS_H_
#define ENCODERD_TESTS_SUPPORT_CUDA_EMULATED_PRODUCTS_H_

#include <memory>
#include <string>
#include <vector>

#include "engine/device/cuda/products/algorithms.h"
#include "engine/device/cuda/products/products.h"

namespace encoderd {
namespace cuda {

// Loops: float sums in order, times the scales of rows in e4m3, then the
// epilogue and the residual, then one rounding. Without the exact GELU.
class EmulatedProducts : public ProductFactory {
 public:
  absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args) override;
  std::string name() const override { return "loops"; }
};

// A library of two algorithms, "loops" and "more loops", that give the same
// bits; anything else fails its check.
class EmulatedLibrary : public AlgorithmLibrary {
 public:
  std::string name() const override { return "loops"; }
  absl::StatusOr<std::vector<Algorithm>> Candidates(const ProductArgs& args,
                                                    int64_t rows) override;
  absl::Status Check(const ProductArgs& args, const Algorithm& algorithm,
                     absl::Span<const int64_t> rows) override;
  absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args, const Algorithm& algorithm) override;
  std::string Describe(const Algorithm& algorithm) const override {
    return algorithm;
  }
};

// The same loops with the exact GELU behind them, and nothing else; 16 bits.
class EmulatedGeluLibrary : public EmulatedLibrary {
 public:
  std::string name() const override { return "gelu loops"; }
  absl::StatusOr<std::vector<Algorithm>> Candidates(const ProductArgs& args,
                                                    int64_t rows) override;
  absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args, const Algorithm& algorithm) override;
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_CUDA_EMULATED_PRODUCTS_H_
