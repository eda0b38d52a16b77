// What a product shows before it serves, on a card: that a row's bits depend on
// neither the count of rows nor its place among them, that two algorithms give
// the same bits, that a result lies within its bound; and what it takes.
//
// Its rows and weights are made so that a sum in another order has other bits:
// values of both signs spread evenly over 13 (rows) and 11 (weights) powers of
// two. Rows repeat after kPeriod of them, so that any place can be compared
// with the first.
//
// Thread rule: one thread at a time, on the device that was in use at Create.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_PRODUCT_PROOF_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_PRODUCT_PROOF_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/device/cuda/event_timer.h"
#include "engine/device/cuda/memory.h"
#include "engine/device/cuda/products.h"
#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

class ProductProof {
 public:
  static constexpr int64_t kPeriod = 512;

  // Puts y for x [rows,in] on the stream.
  using RunRows = std::function<absl::Status(const void* x, int64_t rows,
                                             void* y, Stream stream)>;

  // Memory for products like `args` of up to most_rows rows.
  // RESOURCE_EXHAUSTED: it cannot be had. Two proofs of the same sizes have the
  // same values.
  static absl::StatusOr<std::unique_ptr<ProductProof>> Create(
      Runtime* runtime, const ProductArgs& args, int64_t most_rows);

  // `args`, with the weights and the bias of the proof.
  const ProductArgs& args() const { return args_; }
  int64_t most_rows() const { return most_rows_; }
  Runtime* runtime() const { return runtime_; }

  // Others are compared with `product` from now on. INTERNAL, with figures: a
  // row's bits depend on the rows beside it.
  absl::Status SetReference(const Product& product);
  // INTERNAL, with figures, unless it gives the reference's bits at each of
  // these counts of rows; also where both add a residual.
  absl::Status CompareBits(const Product& product,
                           absl::Span<const int64_t> counts);
  // INTERNAL, with figures, unless RunAdding of the reference lies within its
  // bound of Run: one rounding of the sum, one of the product that it spares.
  absl::Status CheckResidual(const Product& reference);

  // The least of a few runs at `rows` rows.
  absl::StatusOr<double> Seconds(const RunRows& run, int64_t rows);
  absl::StatusOr<double> Seconds(const Product& product, int64_t rows);

  // The first rows, at most kPeriod, of what `run` gives for `rows` rows, as
  // floats [rows,out].
  absl::StatusOr<std::vector<float>> Values(const RunRows& run, int64_t rows);
  // Twice what the order of a float sum of `in` products can change:
  // in 2^-24 |x row| |weight row|, by Cauchy and Schwarz.
  double SumBound(int64_t row, int64_t column) const;
  // Half a unit in the last place of 1 in the element; below it, the least
  // step of an fp16.
  double Epsilon() const;
  double LeastStep() const;
  // As the card has it.
  double Bias(int64_t column) const { return bias_values_[column]; }

 private:
  ProductProof(Runtime* runtime, const ProductArgs& args, int64_t most_rows);
  absl::Status Take();
  // x for `rows` rows.
  absl::Status UploadRows(int64_t rows);
  // y of `run`, every value of which was a NaN before.
  absl::Status RunOnce(const RunRows& run, int64_t rows);
  // `count` rows of y from `first` on, as bytes, valid until the next call.
  absl::StatusOr<const char*> Download(int64_t first, int64_t count);
  // How many values of y's rows differ from `want` [period,out].
  absl::StatusOr<int64_t> Differences(int64_t rows, const std::string& want);
  absl::Status Compare(const RunRows& run, absl::Span<const int64_t> counts,
                       const std::string& want, const char* what);
  absl::StatusOr<std::string> Block(const RunRows& run);
  RunRows Adding(const Product& product) const;
  int64_t period() const { return std::min(kPeriod, most_rows_); }
  int64_t row_bytes() const;

  Runtime* const runtime_;
  ProductArgs args_;
  const int64_t most_rows_;
  OwnedStream stream_;
  EventTimer timer_;
  DeviceBuffer x_, y_, weight_, bias_, residual_;
  PinnedBuffer staging_;
  std::vector<char> period_rows_;  // x's, as the card has them
  int64_t uploaded_ = 0;           // rows of x on the card
  std::vector<float> bias_values_, residual_values_;
  std::vector<double> x_norms_, weight_norms_;
  std::string want_, want_adding_;  // the reference's first rows
};

// "12.5": a duration in microseconds, for notes.
std::string MicrosecondsText(double seconds);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_PRODUCT_PROOF_H_
