#include "engine/device/cuda/product_proof.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/device/cuda/narrow.h"

namespace encoderd {
namespace cuda {
namespace {

// Weights repeat after as many rows: making them takes no time.
constexpr int64_t kWeightPeriod = 256;
constexpr int kRepeats = 3;
// A row alone, a few, odd counts below and above a tile.
constexpr int64_t kCounts[] = {1, 7, 17, 129, 1000, 4097};

// Of both signs, spread over powers of two from 2^least to 2^most.
std::vector<float> WideValues(int64_t count, int least, int most,
                              uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    const uint32_t bits = random();
    const int power = least + static_cast<int>(bits % (most - least + 1));
    const auto fraction = static_cast<float>(bits >> 9 & 0x7fff) * 0x1p-15f;
    value = std::ldexp(1.0f + fraction, power) *
            ((bits & 1U << 31) != 0 ? -1.0f : 1.0f);
  }
  return values;
}

std::vector<double> RowNorms(const std::vector<float>& values, int64_t cols) {
  std::vector<double> norms;
  for (size_t first = 0; first < values.size(); first += cols) {
    double squares = 0;
    for (int64_t c = 0; c < cols; ++c)
      squares += double{values[first + c]} * values[first + c];
    norms.push_back(std::sqrt(squares));
  }
  return norms;
}

// Codes [rows,cols] and then scales [rows]; rows repeat those of `period`.
std::vector<char> RepeatE4m3(const std::vector<char>& period, int64_t rows,
                             int64_t cols) {
  const int64_t repeats = static_cast<int64_t>(period.size()) / (cols + 4);
  std::vector<char> bytes(E4m3RowsBytes(rows, cols));
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t from = r % repeats;
    std::memcpy(&bytes[r * cols], &period[from * cols], cols);
    std::memcpy(&bytes[rows * cols + 4 * r], &period[repeats * cols + 4 * from],
                4);
  }
  return bytes;
}

}  // namespace

std::string MicrosecondsText(double seconds) {
  return absl::StrFormat("%.1f us", 1e6 * seconds);
}

ProductProof::ProductProof(Runtime* runtime, const ProductArgs& args,
                           int64_t most_rows)
    : runtime_(runtime), args_(args), most_rows_(most_rows) {}

absl::StatusOr<std::unique_ptr<ProductProof>> ProductProof::Create(
    Runtime* runtime, const ProductArgs& args, int64_t most_rows) {
  auto proof = absl::WrapUnique(new ProductProof(runtime, args, most_rows));
  const absl::Status status = proof->Take();
  if (!status.ok()) return status;
  return proof;
}

int64_t ProductProof::row_bytes() const {
  return args_.out * DTypeBytes(DTypeOf(args_.element));
}

absl::Status ProductProof::Take() {
  const DType dtype = DTypeOf(args_.element);
  const bool e4m3 = args_.operands == Operands::kE4m3;
  const auto narrow = [&](const std::vector<float>& values) {
    return e4m3 ? NarrowRowsToE4m3(values, args_.in) : Narrow(values, dtype);
  };
  const std::vector<float> rows = WideValues(period() * args_.in, -6, 6, 1);
  x_norms_ = RowNorms(rows, args_.in);
  period_rows_ = narrow(rows);
  const int64_t distinct = std::min(kWeightPeriod, args_.out);
  const std::vector<float> some = WideValues(distinct * args_.in, -8, 2, 2);
  weight_norms_ = RowNorms(some, args_.in);
  std::vector<float> weights;
  weights.reserve(args_.out * args_.in);
  for (int64_t c = 0; c < args_.out; ++c) {
    const auto from = some.begin() + c % distinct * args_.in;
    weights.insert(weights.end(), from, from + args_.in);
  }
  const std::vector<char> weight = narrow(weights);
  const DType bias_type =
      args_.epilogue == Epilogue::kBiasGeluErf ? DType::kF32 : dtype;
  // Of few bits, so that each dtype has the same values.
  bias_values_.resize(args_.out);
  for (int64_t c = 0; c < args_.out; ++c)
    bias_values_[c] = static_cast<float>(c * 37 % 101 - 50) * 0x1p-5f;
  const std::vector<char> bias = Narrow(bias_values_, bias_type);
  const std::vector<float> added = WideValues(period() * args_.out, -8, 6, 3);
  const std::vector<char> residual = Narrow(added, dtype);
  residual_values_ =
      Widen(residual.data(), period() * args_.out, args_.element);

  const char* const kWhat = "proving a product";
  absl::Status status = stream_.Take(runtime_);
  status.Update(timer_.Take(runtime_));
  const auto take = [&](auto* buffer, int64_t bytes) {
    if (status.ok()) status = buffer->Take(runtime_, bytes, kWhat);
  };
  const auto put = [&](DeviceBuffer* buffer, const std::vector<char>& bytes) {
    const auto size = static_cast<int64_t>(bytes.size());
    take(buffer, size);
    if (!status.ok()) return;
    const int code =
        runtime_->CopyToDeviceAndWait(bytes.data(), size, buffer->data());
    if (code != 0) status = RuntimeError(runtime_, code, kWhat);
  };
  take(&x_, e4m3 ? E4m3RowsBytes(most_rows_, args_.in)
                 : most_rows_ * args_.in * DTypeBytes(dtype));
  take(&y_, most_rows_ * row_bytes());
  take(&staging_, period() * row_bytes());
  put(&weight_, weight);
  put(&bias_, bias);
  put(&residual_, residual);
  args_.weight = weight_.data();
  args_.bias = args_.epilogue == Epilogue::kNone ? nullptr : bias_.data();
  return status;
}

absl::Status ProductProof::UploadRows(int64_t rows) {
  const bool e4m3 = args_.operands == Operands::kE4m3;
  if (e4m3 ? uploaded_ == rows : uploaded_ >= rows) return absl::OkStatus();
  std::vector<char> bytes;
  if (e4m3) {
    bytes = RepeatE4m3(period_rows_, rows, args_.in);
  } else {
    const int64_t each = static_cast<int64_t>(period_rows_.size()) / period();
    for (int64_t first = 0; first < most_rows_; first += period()) {
      const int64_t count = std::min(period(), most_rows_ - first);
      bytes.insert(bytes.end(), period_rows_.begin(),
                   period_rows_.begin() + count * each);
    }
  }
  const int code = runtime_->CopyToDeviceAndWait(
      bytes.data(), static_cast<int64_t>(bytes.size()), x_.data());
  if (code != 0) return RuntimeError(runtime_, code, "proving a product");
  uploaded_ = e4m3 ? rows : most_rows_;
  return absl::OkStatus();
}

absl::Status ProductProof::RunOnce(const RunRows& run, int64_t rows) {
  absl::Status status = UploadRows(rows);
  if (!status.ok()) return status;
  int code =
      runtime_->FillWithNaNs(y_.data(), rows * row_bytes(), stream_.get());
  if (code == 0) status = run(x_.data(), rows, y_.data(), stream_.get());
  // Also after an error of the run: it tells whether the device is lost.
  const int waited = runtime_->Synchronize(stream_.get());
  if (waited != 0) code = waited;
  if (code != 0) return RuntimeError(runtime_, code, "proving a product");
  return status;
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

absl::StatusOr<int64_t> ProductProof::Differences(int64_t rows,
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
          want.data() + (first + r) % period() * row_bytes();
      if (std::memcmp(row, same, row_bytes()) == 0) continue;
      for (int64_t at = 0; at < row_bytes(); at += value_bytes) {
        if (std::memcmp(row + at, same + at, value_bytes) != 0) ++differences;
      }
    }
    if (rows == most) break;  // the three are one
  }
  return differences;
}

absl::Status ProductProof::Compare(const RunRows& run,
                                   absl::Span<const int64_t> counts,
                                   const std::string& want, const char* what) {
  for (const int64_t count : counts) {
    const int64_t rows = std::min(count, most_rows_);
    absl::Status status = RunOnce(run, rows);
    if (!status.ok()) return status;
    const absl::StatusOr<int64_t> differences = Differences(rows, want);
    if (!differences.ok()) return differences.status();
    if (*differences == 0) continue;
    return absl::InternalError(absl::StrCat(
        what, " at ", rows, " rows: ", *differences, " values differ in the ",
        std::min(rows, 3 * period()), " rows of ", args_.out, " compared"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ProductProof::Block(const RunRows& run) {
  absl::Status status = RunOnce(run, period());
  if (!status.ok()) return status;
  const absl::StatusOr<const char*> got = Download(0, period());
  if (!got.ok()) return got.status();
  return std::string(*got, period() * row_bytes());
}

ProductProof::RunRows ProductProof::Adding(const Product& product) const {
  return [this, &product](const void* x, int64_t rows, void* y, Stream stream) {
    return product.RunAdding(x, rows, residual_.data(), y, stream);
  };
}

absl::Status ProductProof::SetReference(const Product& product) {
  const RunRows run = [&](const void* x, int64_t rows, void* y, Stream stream) {
    return product.Run(x, rows, y, stream);
  };
  absl::StatusOr<std::string> block = Block(run);
  if (!block.ok()) return block.status();
  want_ = *std::move(block);
  want_adding_.clear();
  std::vector<int64_t> counts(std::begin(kCounts), std::end(kCounts));
  counts.push_back(most_rows_);
  return Compare(run, counts, want_,
                 "a row's bits depend on the rows beside it");
}

absl::Status ProductProof::CheckResidual(const Product& reference) {
  absl::StatusOr<std::string> block = Block(Adding(reference));
  if (!block.ok()) return block.status();
  const int64_t count = period() * args_.out;
  const std::vector<float> plain = Widen(want_.data(), count, args_.element);
  const std::vector<float> got = Widen(block->data(), count, args_.element);
  double worst = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double sum = double{plain[i]} + residual_values_[i];
    // The product's rounding, which one has and the other has not, the sum's,
    // and the float addition's.
    const double size = std::fabs(plain[i]) + std::fabs(sum);
    const double bound = (Epsilon() + 0x1p-22) * size +
                         SumBound(i / args_.out, i % args_.out) + LeastStep();
    const double ratio = std::fabs(got[i] - sum) / bound;
    worst = std::isnan(ratio) ? HUGE_VAL : std::max(worst, ratio);
  }
  if (worst > 1) {
    return absl::InternalError(absl::StrFormat(
        "with a residual added it is off by %.3g of its bound", worst));
  }
  want_adding_ = *std::move(block);
  return absl::OkStatus();
}

absl::Status ProductProof::CompareBits(const Product& product,
                                       absl::Span<const int64_t> counts) {
  absl::Status status =
      Compare([&](const void* x, int64_t rows, void* y,
                  Stream stream) { return product.Run(x, rows, y, stream); },
              counts, want_, "other bits");
  if (!status.ok() || want_adding_.empty()) return status;
  // The residual has kPeriod rows.
  std::vector<int64_t> few;
  for (const int64_t count : counts) few.push_back(std::min(count, period()));
  return Compare(Adding(product), few, want_adding_,
                 "other bits with a residual added");
}

absl::StatusOr<double> ProductProof::Seconds(const RunRows& run, int64_t rows) {
  const int runs = rows > 1024 ? 4 : 16;
  absl::Status status = RunOnce(run, rows);  // warms up
  if (!status.ok()) return status;
  double least = HUGE_VAL;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const absl::StatusOr<double> seconds = timer_.Seconds(
        [&]() -> absl::Status {
          for (int i = 0; i < runs; ++i) {
            absl::Status ran = run(x_.data(), rows, y_.data(), stream_.get());
            if (!ran.ok()) return ran;
          }
          return absl::OkStatus();
        },
        stream_.get());
    if (!seconds.ok()) return seconds.status();
    least = std::min(least, *seconds / runs);
  }
  return least;
}

absl::StatusOr<double> ProductProof::Seconds(const Product& product,
                                             int64_t rows) {
  return Seconds(
      [&](const void* x, int64_t count, void* y, Stream stream) {
        return product.Run(x, count, y, stream);
      },
      rows);
}

absl::StatusOr<std::vector<float>> ProductProof::Values(const RunRows& run,
                                                        int64_t rows) {
  absl::Status status = RunOnce(run, rows);
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

double ProductProof::Epsilon() const {
  if (args_.element == Element::kFloat) return 0x1p-24;
  return args_.element == Element::kHalf ? 0x1p-11 : 0x1p-8;
}

double ProductProof::LeastStep() const {
  return args_.element == Element::kHalf ? 0x1p-24 : 0x1p-126;
}

}  // namespace cuda
}  // namespace encoderd
