// Chooses the algorithms of each product: a reference, whose bits a product has
// at every count of rows, and for each bucket of rows the fastest one that
// gives the reference's very bits. Both are shown on the card at start, on
// values of wide exponents (product_proof.h); what fails does not serve, and a
// note says by how much.
//
// The reference is the library's first answer that serves all counts of rows
// and gives a row the same bits at each. No clock has a say in it, so that a
// restart changes no bits; without memory for the proof there is no start.
//
// Thread rule: as ProductFactory, one thread at a time.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_TUNED_PRODUCTS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_TUNED_PRODUCTS_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/device/cuda/host/agreement.h"
#include "engine/device/cuda/products/algorithms.h"
#include "engine/device/cuda/products/bucketed_product.h"
#include "engine/device/cuda/products/product_proof.h"
#include "engine/device/cuda/products/tuning.h"
#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

// Of the products of one ProductKey.
struct ProductChoice {
  Algorithm reference;
  // And, last, for more rows than any bucket has: the reference.
  std::array<Algorithm, kBucketRows.size() + 1> by_bucket;
  bool adds_residual = false;
};

class TunedProducts : public ProductFactory {
 public:
  // Of card `ordinal`. most_rows: up to which products are proved and timed;
  // more rows are served by the reference. agreement: of all cards of the
  // process.
  TunedProducts(
      std::unique_ptr<AlgorithmLibrary> library,
      std::shared_ptr<TuningStore> store, std::shared_ptr<Runtime> runtime,
      int32_t ordinal, int64_t most_rows = kBucketRows.back(),
      std::shared_ptr<Agreement> agreement = std::make_shared<Agreement>());

  // UNIMPLEMENTED: no algorithm of the library serves; RESOURCE_EXHAUSTED: no
  // memory to prove one; DATA_LOSS: the device was lost on the way; INTERNAL:
  // cards disagree.
  absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args) override;
  std::string name() const override { return library_->name(); }
  int64_t workspace_bytes() const override {
    return library_->workspace_bytes();
  }
  void AllowGraphs(bool allowed) override { graphs_ = allowed; }
  std::vector<std::string> TakeNotes() override { return store_->TakeNotes(); }

  // What products like `args` are served by; made at the first Create.
  const ProductChoice* ChoiceOf(const ProductArgs& args) const;
  const AlgorithmLibrary& library() const { return *library_; }

 private:
  absl::StatusOr<ProductChoice> Choose(const ProductArgs& args);
  // The reference of the process, or the first that serves.
  absl::StatusOr<Algorithm> ChooseReference(const ProductArgs& args,
                                            ProductProof* proof);
  // INVALID_ARGUMENT: not this one, and why.
  absl::Status TryReference(const ProductArgs& args, const Algorithm& algorithm,
                            ProductProof* proof);
  // Fills by_bucket[bucket]; what is not yet in the store goes to *timed.
  absl::Status ChooseForBucket(const ProductArgs& args, size_t bucket,
                               ProductProof* proof, ProductChoice* choice,
                               Choices* timed);
  // `algorithm`, shown to serve the bucket. Any error but one that ends the
  // start: it does not serve.
  absl::StatusOr<std::unique_ptr<Product>> TryForBucket(
      const ProductArgs& args, size_t bucket, const Algorithm& algorithm,
      ProductProof* proof);
  // And its seconds at the bucket's most rows.
  absl::StatusOr<double> TimeForBucket(const ProductArgs& args, size_t bucket,
                                       const Algorithm& algorithm,
                                       ProductProof* proof);
  // An error that ends the start, of a choice kept for `key`: where it comes
  // from and what to do.
  absl::Status FaultOfKept(const ProductKey& key,
                           const absl::Status& status) const;
  void AddNote(const ProductArgs& args, const std::string& text);
  // An algorithm that does not serve, and why: for the choice's note.
  void Refuse(const Algorithm& algorithm, const std::string& why);

  const std::unique_ptr<AlgorithmLibrary> library_;
  const std::shared_ptr<TuningStore> store_;
  const std::shared_ptr<Runtime> runtime_;
  const int32_t ordinal_;
  const int64_t most_rows_;
  const std::shared_ptr<Agreement> agreement_;
  bool graphs_ = true;
  std::map<ProductKey, ProductChoice> choices_;

  // Of the choice that is being made.
  int refused_ = 0;
  std::string first_refused_;
  std::vector<std::string> faster_;  // than the reference, bucket by bucket
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_TUNED_PRODUCTS_H_
