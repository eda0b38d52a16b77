// What a product shows before it serves, on a card: that a row's bits depend on
// neither the count of rows nor its place among them, that two algorithms give
// the same bits, that a result lies within its bound; and what it takes. On the
// values of proof_values.h; rows repeat after kPeriod of them, so that any
// place can be compared with the first.
//
// Thread rule: one thread at a time, on the device that was in use at Create.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_PRODUCT_PROOF_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_PRODUCT_PROOF_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/device/cuda/host/event_timer.h"
#include "engine/device/cuda/host/memory.h"
#include "engine/device/cuda/products/products.h"
#include "engine/device/cuda/products/proof_values.h"
#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

class ProductProof {
 public:
  static constexpr int64_t kPeriod = 512;

  // Puts y for x [rows,in] on the stream.
  using RunRows = std::function<absl::Status(const void* x, int64_t rows,
                                             void* y, const OpStream& stream)>;

  // The product, without a residual; borrowed.
  static RunRows Plain(const Product& product);

  // Memory for products like `args` of up to most_rows rows, for residuals
  // where args.residual, and for what their products may overwrite.
  // RESOURCE_EXHAUSTED: it cannot be had. Two proofs of the same sizes and kind
  // have the same values.
  static absl::StatusOr<std::unique_ptr<ProductProof>> Create(
      Runtime* runtime, const ProductArgs& args, int64_t most_rows,
      int64_t workspace_bytes, ProofValues values = ProofValues::kCancelling);

  // `args`, with the weights and the bias of the proof.
  const ProductArgs& args() const { return args_; }
  int64_t most_rows() const { return most_rows_; }
  Runtime* runtime() const { return runtime_; }

  // Others are compared with `product` from now on. INTERNAL, with figures: a
  // row's bits depend on the other rows.
  absl::Status SetReference(const Product& product);
  // INTERNAL, with figures, unless it gives the reference's bits at each of
  // these counts of rows; also where both add a residual.
  absl::Status CompareBits(const Product& product,
                           absl::Span<const int64_t> counts);
  // INTERNAL, with figures, unless RunAdding of the reference lies within its
  // bound of Run (one rounding of the sum, one of the product that it spares)
  // and gives a row the same bits at every count of rows. args().residual.
  absl::Status CheckResidual(const Product& reference);

  // Whether few rows may be timed by a CUDA graph, as passes of few rows run: a
  // library's calls take longer than such products. Where a graph cannot be
  // had, the calls are timed.
  void AllowGraphs(bool allowed) { graphs_ = allowed; }
  // The least of a few runs at `rows` rows.
  absl::StatusOr<double> Seconds(const RunRows& run, int64_t rows);
  absl::StatusOr<double> Seconds(const Product& product, int64_t rows);

  // The first rows, at most kPeriod, of what `run` gives for `rows` rows, as
  // floats [rows,out].
  absl::StatusOr<std::vector<float>> Values(const RunRows& run, int64_t rows);
  // Twice what the order of a float sum of `in` products can change:
  // in 2^-24 |x row| |weight row|, by Cauchy and Schwarz.
  double SumBound(int64_t row, int64_t column) const;
  // Half a unit in the last place of 1 in the element; and the element's least
  // step.
  double Epsilon() const;
  double LeastStep() const;
  // As the card has it.
  double Bias(int64_t column) const { return bias_values_[column]; }

 private:
  ProductProof(Runtime* runtime, const ProductArgs& args, int64_t most_rows,
               int64_t workspace_bytes);
  absl::Status Take(ProofValues values);
  // x for `rows` rows from row `first` on.
  absl::StatusOr<const void*> Rows(int64_t first, int64_t rows);
  // y of `run`, every value of which was a NaN before.
  absl::Status RunOnce(const RunRows& run, int64_t first, int64_t rows);
  // `count` rows of y from `first` on, as bytes, valid until the next call.
  absl::StatusOr<const char*> Download(int64_t first, int64_t count);
  // How many values of y, rows from row `start` of x on, differ from `want`
  // [period,out].
  absl::StatusOr<int64_t> Differences(int64_t start, int64_t rows,
                                      const std::string& want);
  // Of runs with a residual if `adds`.
  absl::Status Compare(const Product& product, bool adds,
                       absl::Span<const int64_t> counts, const char* what);
  absl::StatusOr<std::string> Block(const RunRows& run);
  absl::StatusOr<double> LeastSeconds(
      const std::function<absl::Status()>& work);
  std::vector<int64_t> AllCounts() const;
  // RunAdding with the residual of rows `first` and on.
  absl::StatusOr<RunRows> Adding(const Product& product, int64_t first,
                                 int64_t rows);
  int64_t period() const { return std::min(kPeriod, most_rows_); }
  int64_t row_bytes() const;
  OpStream stream() const {
    return OpStream(stream_.get(), false, workspace_.data());
  }

  Runtime* const runtime_;
  ProductArgs args_;
  const int64_t most_rows_, workspace_bytes_;
  OwnedStream stream_;
  EventTimer timer_;
  bool graphs_ = true;
  DeviceBuffer x_, some_x_, y_, weight_, bias_, residual_, some_residual_;
  DeviceBuffer workspace_;
  PinnedBuffer staging_;
  // x's and the residual's, as the card has them.
  std::vector<char> period_rows_, period_residual_;
  int64_t uploaded_ = 0;  // rows in x_
  std::vector<float> bias_values_, residual_values_;
  std::vector<double> x_norms_, weight_norms_;
  std::string want_, want_adding_;  // the reference's first rows
};

// "12.5 us": a duration, for notes.
std::string MicrosecondsText(double seconds);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_PRODUCT_PROOF_H_
