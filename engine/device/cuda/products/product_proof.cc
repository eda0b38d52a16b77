#include "engine/device/cuda/products/product_proof.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/device/cuda/host/narrow.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int kRepeats = 3;
// A row alone, a few, odd counts below and above a tile.
constexpr int64_t kCounts[] = {1, 7, 17, 129, 1000, 4097};

// Small counts are run with other rows again and again, so often.
constexpr int64_t kWindows = 32;

}  // namespace

std::string MicrosecondsText(double seconds) {
  return absl::StrFormat("%.1f us", 1e6 * seconds);
}

ProductProof::ProductProof(Runtime* runtime, const ProductArgs& args,
                           int64_t most_rows, int64_t workspace_bytes)
    : runtime_(runtime),
      args_(args),
      most_rows_(most_rows),
      workspace_bytes_(workspace_bytes) {}

absl::StatusOr<std::unique_ptr<ProductProof>> ProductProof::Create(
    Runtime* runtime, const ProductArgs& args, int64_t most_rows,
    int64_t workspace_bytes, ProofValues values) {
  auto proof = absl::WrapUnique(
      new ProductProof(runtime, args, most_rows, workspace_bytes));
  const absl::Status status = proof->Take(values);
  if (!status.ok()) return status;
  return proof;
}

int64_t ProductProof::row_bytes() const {
  return args_.out * DTypeBytes(args_.element);
}

absl::Status ProductProof::Take(ProofValues values) {
  const DType dtype = args_.element;
  const bool e4m3 = args_.operands == Operands::kE4m3;
  const ProofMatrices made = MakeProofMatrices(values, args_, period());
  const auto narrow = [&](const std::vector<float>& matrix) {
    return e4m3 ? NarrowRowsToE4m3(matrix, args_.in) : Narrow(matrix, dtype);
  };
  x_norms_ = RowNorms(made.x, args_.in);
  weight_norms_ = RowNorms(made.weight, args_.in);
  period_rows_ = narrow(made.x);
  const std::vector<char> weight = narrow(made.weight);
  bias_values_ = made.bias;
  const std::vector<char> bias =
      Narrow(made.bias,
             args_.epilogue == Epilogue::kBiasGeluErf ? DType::kF32 : dtype);

  const char* const kWhat = "proving a product";
  absl::Status status = stream_.Take(runtime_);
  status.Update(timer_.Take(runtime_));
  const auto take = [&](auto* buffer, int64_t bytes) {
    if (status.ok()) status = buffer->Take(runtime_, bytes, kWhat);
  };
  const auto put = [&](DeviceBuffer* buffer, const std::vector<char>& bytes) {
    if (!status.ok()) return;
    status = TakeCopy(runtime_, bytes.data(),
                      static_cast<int64_t>(bytes.size()), kWhat, buffer);
  };
  const int64_t x_bytes = static_cast<int64_t>(period_rows_.size());
  take(&x_, x_bytes / period() * most_rows_);
  take(&some_x_, x_bytes);
  take(&y_, most_rows_ * row_bytes());
  if (workspace_bytes_ > 0) take(&workspace_, workspace_bytes_);
  take(&staging_, period() * row_bytes());
  put(&weight_, weight);
  put(&bias_, bias);
  args_.weight = weight_.data();
  args_.bias = args_.epilogue == Epilogue::kNone ? nullptr : bias_.data();
  if (!args_.residual) return status;
  period_residual_ = Narrow(made.residual, dtype);
  residual_values_ =
      Widen(period_residual_.data(), period() * args_.out, args_.element);
  take(&some_residual_, static_cast<int64_t>(period_residual_.size()));
  put(&residual_, RepeatRows(period_residual_, period(), Operands::kElement, 0,
                             most_rows_));
  return status;
}

absl::StatusOr<const void*> ProductProof::Rows(int64_t first, int64_t rows) {
  const bool all = rows > period();
  const DeviceBuffer& buffer = all ? x_ : some_x_;
  const bool e4m3 = args_.operands == Operands::kE4m3;
  if (all && (e4m3 ? uploaded_ == rows : uploaded_ > 0)) return x_.data();
  const std::vector<char> bytes =
      RepeatRows(period_rows_, period(), args_.operands, first,
                 all && !e4m3 ? most_rows_ : rows);
  const int code = runtime_->CopyToDeviceAndWait(
      bytes.data(), static_cast<int64_t>(bytes.size()), buffer.data());
  if (code != 0) return RuntimeError(runtime_, code, "proving a product");
  if (all) uploaded_ = rows;
  return buffer.data();
}

absl::Status ProductProof::RunOnce(const RunRows& run, int64_t first,
                                   int64_t rows) {
  const absl::StatusOr<const void*> x = Rows(first, rows);
  if (!x.ok()) return x.status();
  int code =
      runtime_->FillWithNaNs(y_.data(), rows * row_bytes(), stream_.get());
  if (code == 0 && workspace_bytes_ > 0) {
    code = runtime_->FillWithNaNs(workspace_.data(), workspace_bytes_,
                                  stream_.get());
  }
  absl::Status status;
  if (code == 0) status = run(*x, rows, y_.data(), stream());
  // Also after an error of the run: it tells whether the device is lost.
  const int waited = runtime_->Synchronize(stream_.get());
  if (waited != 0 || code != 0) {
    return RuntimeError(runtime_, waited != 0 ? waited : code,
                        "proving a product");
  }
  return NotLost(status);
}

absl::StatusOr<const char*> ProductProof::Download(int64_t first,
                                                   int64_t count) {
  int code =
      runtime_->CopyToHost(y_.as<char>() + first * row_bytes(),
                           count * row_bytes(), staging_.data(), stream_.get());
  if (code == 0) code = runtime_->Synchronize(stream_.get());
  if (code != 0) return RuntimeError(runtime_, code, "proving a product");
  return staging_.as<char>();
}

absl::StatusOr<int64_t> ProductProof::Differences(int64_t start, int64_t rows,
                                                  const std::string& want) {
  const int64_t value_bytes = row_bytes() / args_.out;
  int64_t differences = 0;
  const int64_t most = std::min(period(), rows);
  for (const int64_t first : {int64_t{0}, (rows - most) / 2, rows - most}) {
    const absl::StatusOr<const char*> got = Download(first, most);
    if (!got.ok()) return got.status();
    for (int64_t r = 0; r < most; ++r) {
      const char* const row = *got + r * row_bytes();
      const char* const same =
          want.data() + (start + first + r) % period() * row_bytes();
      if (std::memcmp(row, same, row_bytes()) == 0) continue;
      for (int64_t at = 0; at < row_bytes(); at += value_bytes) {
        if (std::memcmp(row + at, same + at, value_bytes) != 0) ++differences;
      }
    }
    if (rows == most) break;  // the three are one
  }
  return differences;
}

absl::Status ProductProof::Compare(const Product& product, bool adds,
                                   absl::Span<const int64_t> counts,
                                   const char* what) {
  for (const int64_t count : counts) {
    const int64_t rows = std::min(count, most_rows_);
    const int64_t windows =
        rows < period() ? std::min(kWindows, period() / rows) : 1;
    int64_t all = 0;
    for (int64_t first = 0; first < windows * rows; first += rows) {
      const absl::StatusOr<RunRows> run =
          adds ? Adding(product, first, rows) : Plain(product);
      if (!run.ok()) return run.status();
      absl::Status status = RunOnce(*run, first, rows);
      if (!status.ok()) return status;
      const absl::StatusOr<int64_t> differences =
          Differences(first, rows, adds ? want_adding_ : want_);
      if (!differences.ok()) return differences.status();
      all += *differences;
    }
    if (all == 0) continue;
    return absl::InternalError(absl::StrCat(
        what, " at ", rows, " rows: ", all, " values differ in the ",
        windows * std::min(rows, 3 * period()), " rows of ", args_.out,
        " compared"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ProductProof::Block(const RunRows& run) {
  absl::Status status = RunOnce(run, 0, period());
  if (!status.ok()) return status;
  const absl::StatusOr<const char*> got = Download(0, period());
  if (!got.ok()) return got.status();
  return std::string(*got, period() * row_bytes());
}

ProductProof::RunRows ProductProof::Plain(const Product& product) {
  return
      [&product](const void* x, int64_t rows, void* y, const OpStream& stream) {
        return product.Run(x, rows, y, stream);
      };
}

absl::StatusOr<ProductProof::RunRows> ProductProof::Adding(
    const Product& product, int64_t first, int64_t rows) {
  const void* residual = residual_.data();
  if (first > 0) {
    const std::vector<char> bytes =
        RepeatRows(period_residual_, period(), Operands::kElement, first, rows);
    const int code = runtime_->CopyToDeviceAndWait(
        bytes.data(), static_cast<int64_t>(bytes.size()),
        some_residual_.data());
    if (code != 0) return RuntimeError(runtime_, code, "proving a product");
    residual = some_residual_.data();
  }
  return RunRows([&product, residual](const void* x, int64_t count, void* y,
                                      const OpStream& stream) {
    return product.RunAdding(x, count, residual, y, stream);
  });
}

std::vector<int64_t> ProductProof::AllCounts() const {
  std::vector<int64_t> counts(std::begin(kCounts), std::end(kCounts));
  counts.push_back(most_rows_);
  return counts;
}

absl::Status ProductProof::SetReference(const Product& product) {
  absl::StatusOr<std::string> block = Block(Plain(product));
  if (!block.ok()) return block.status();
  want_ = *std::move(block);
  want_adding_.clear();
  return Compare(product, /*adds=*/false, AllCounts(),
                 "a row's bits depend on the other rows");
}

absl::Status ProductProof::CheckResidual(const Product& reference) {
  const absl::StatusOr<RunRows> adding = Adding(reference, 0, period());
  if (!adding.ok()) return adding.status();
  absl::StatusOr<std::string> block = Block(*adding);
  if (!block.ok()) return block.status();
  const int64_t count = period() * args_.out;
  const std::vector<float> plain = Widen(want_.data(), count, args_.element);
  const std::vector<float> got = Widen(block->data(), count, args_.element);
  double worst = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double sum = double{plain[i]} + residual_values_[i];
    // The product's rounding, which one has and the other has not, the sum's,
    // and the float addition's. The sums are the same.
    const double size = std::fabs(plain[i]) + std::fabs(sum);
    const double bound = (Epsilon() + 0x1p-22) * size + 2 * LeastStep();
    const double ratio = std::fabs(got[i] - sum) / bound;
    worst = std::isnan(ratio) ? HUGE_VAL : std::max(worst, ratio);
  }
  if (worst > 1) {
    return absl::InternalError(absl::StrFormat(
        "with a residual added it is off by %.3g of its bound", worst));
  }
  want_adding_ = *std::move(block);
  const absl::Status same =
      Compare(reference, /*adds=*/true, AllCounts(),
              "with a residual a row's bits depend on the other rows");
  if (!same.ok()) want_adding_.clear();  // nobody is compared with it
  return same;
}

absl::Status ProductProof::CompareBits(const Product& product,
                                       absl::Span<const int64_t> counts) {
  absl::Status status = Compare(product, /*adds=*/false, counts, "other bits");
  if (!status.ok() || want_adding_.empty()) return status;
  return Compare(product, /*adds=*/true, counts,
                 "other bits with a residual added");
}

absl::StatusOr<double> ProductProof::Seconds(const RunRows& run, int64_t rows) {
  const int runs = rows > 1024 ? 4 : 16;
  absl::Status status = RunOnce(run, 0, rows);  // warms up
  if (!status.ok()) return status;
  const absl::StatusOr<const void*> x = Rows(0, rows);
  if (!x.ok()) return x.status();
  const auto calls = [&]() -> absl::Status {
    for (int i = 0; i < runs; ++i) {
      absl::Status ran = run(*x, rows, y_.data(), stream());
      if (!ran.ok()) return ran;
    }
    return absl::OkStatus();
  };
  if (graphs_ && rows <= kMostGraphRows) {
    const absl::StatusOr<OwnedGraph> graph =
        Capture(runtime_, stream_.get(), calls);
    if (graph.ok()) {
      const absl::StatusOr<double> seconds = LeastSeconds([&] {
        const int code = runtime_->LaunchGraph(graph->get(), stream_.get());
        return code == 0 ? absl::OkStatus()
                         : RuntimeError(runtime_, code, "timing a graph");
      });
      if (seconds.ok()) return *seconds / runs;
    }
  }
  const absl::StatusOr<double> seconds = LeastSeconds(calls);
  if (!seconds.ok()) return seconds.status();
  return *seconds / runs;
}

absl::StatusOr<double> ProductProof::LeastSeconds(
    const std::function<absl::Status()>& work) {
  double least = HUGE_VAL;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const absl::StatusOr<double> seconds = timer_.Seconds(work, stream_.get());
    if (!seconds.ok()) return seconds.status();
    least = std::min(least, *seconds);
  }
  return least;
}

absl::StatusOr<double> ProductProof::Seconds(const Product& product,
                                             int64_t rows) {
  return Seconds(Plain(product), rows);
}

absl::StatusOr<std::vector<float>> ProductProof::Values(const RunRows& run,
                                                        int64_t rows) {
  absl::Status status = RunOnce(run, 0, rows);
  if (!status.ok()) return status;
  const int64_t some = std::min(rows, period());
  const absl::StatusOr<const char*> got = Download(0, some);
  if (!got.ok()) return got.status();
  return Widen(*got, some * args_.out, args_.element);
}

double ProductProof::SumBound(int64_t row, int64_t column) const {
  return 2 * static_cast<double>(args_.in) * 0x1p-24 *
         x_norms_[row % x_norms_.size()] *
         weight_norms_[column % weight_norms_.size()];
}

double ProductProof::Epsilon() const { return UnitRoundoff(args_.element); }

double ProductProof::LeastStep() const {
  return args_.element == DType::kF16 ? 0x1p-24 : 0x1p-126;
}

}  // namespace cuda
}  // namespace encoderd
