// Chooses the algorithm of each product, once for all counts of rows: of what
// was kept, or the fastest by the clock, or the library's own first choice.
//
// A choice is made for an element, in, out and epilogue alone, so that a row's
// bits depend on neither the rows beside it nor the layer. Timing two like
// algorithms gives now one, now the other, and with it other last bits: where a
// choice cannot be kept (TuningStore::Timed), nothing is timed. What a process
// serves once it serves to the end, on each of its cards: a card whose library
// refuses it is an error, as is a check that fails for another reason.
//
// Thread rule: as ProductFactory, one thread at a time.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_TUNED_PRODUCTS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_TUNED_PRODUCTS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/device/cuda/products.h"
#include "engine/device/cuda/runtime.h"
#include "engine/device/cuda/tuning.h"

namespace encoderd {
namespace cuda {

// What a library of products offers: cublaslt_products.cc is the real one.
class AlgorithmLibrary {
 public:
  virtual ~AlgorithmLibrary() = default;
  virtual std::string name() const = 0;  // "cuBLASLt 130000"
  // Algorithms without workspace or partial sums, the library's own first
  // choice first; UNIMPLEMENTED when there are none.
  virtual absl::StatusOr<std::vector<Algorithm>> Candidates(
      const ProductArgs& args) = 0;
  // OK when `algorithm`, bytes from anywhere, computes `args` at any count of
  // rows, without workspace or partial sums; INVALID_ARGUMENT when it does not;
  // else the check itself failed.
  virtual absl::Status Check(const ProductArgs& args,
                             const Algorithm& algorithm) = 0;
  // With an algorithm of Candidates, or one that passed Check.
  virtual absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args, const Algorithm& algorithm) = 0;
};

// The candidate with the least geometric mean of its times relative to the best
// at each count of rows; the first of equals. seconds [candidates][counts of
// rows]; an empty row: a candidate that failed. -1: all failed.
int FastestOf(const std::vector<std::vector<double>>& seconds);

class TunedProducts : public ProductFactory {
 public:
  // Of card `ordinal`. clock: seconds from any start; the host's own if empty.
  TunedProducts(std::unique_ptr<AlgorithmLibrary> library,
                std::shared_ptr<TuningStore> store,
                std::shared_ptr<Runtime> runtime, int32_t ordinal,
                std::function<double()> clock = {});

  absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args) override;
  std::string name() const override { return library_->name(); }
  std::vector<std::string> TakeNotes() override { return store_->TakeNotes(); }

 private:
  // What the process serves already, or the first choice for these `args`.
  absl::StatusOr<Algorithm> Choose(const ProductArgs& args);
  absl::StatusOr<Algorithm> ChooseFirst(const ProductArgs& args);
  // Whether the library takes what the file holds; a note where it does not.
  absl::StatusOr<bool> Takes(const ProductArgs& args, const Algorithm& kept);
  // The fastest of `candidates`; DATA_LOSS when the device was lost on the way.
  absl::StatusOr<Algorithm> ChooseByTime(
      const ProductArgs& args, const std::vector<Algorithm>& candidates);
  // Seconds of a run at each of the counts of rows.
  absl::StatusOr<std::vector<double>> Time(const ProductArgs& args,
                                           const Algorithm& algorithm,
                                           const void* x, void* y,
                                           Stream stream);

  const std::unique_ptr<AlgorithmLibrary> library_;
  const std::shared_ptr<TuningStore> store_;
  const std::shared_ptr<Runtime> runtime_;
  const int32_t ordinal_;
  const std::function<double()> clock_;
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_TUNED_PRODUCTS_H_
