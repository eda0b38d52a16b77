#include "engine/device/cuda/tuned_products.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/device/cuda/memory.h"
#include "engine/device/cuda/narrow.h"

namespace encoderd {
namespace cuda {
namespace {

// A short text, a few, a full batch.
constexpr int64_t kRows[] = {128, 1024, 8192};
constexpr int64_t kMostRows = 8192;
// The least mean of kRepeats times kRuns runs.
constexpr int kRepeats = 3;
constexpr int kRuns = 8;

double HostClock() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

DType DTypeOf(Element element) {
  if (element == Element::kHalf) return DType::kF16;
  return element == Element::kBf16 ? DType::kBF16 : DType::kF32;
}

// Values as states have them: a card computes zeros with less power. Fewer rows
// in e4m3 have their scales further ahead, among these codes: any will do.
std::vector<char> SomeInput(const ProductArgs& args) {
  std::vector<float> values(kMostRows * args.in);
  uint32_t bits = 1;
  for (float& value : values) {
    bits = bits * 1664525 + 1013904223;
    value = static_cast<float>(bits >> 8) * 0x1p-23f - 1.0f;
  }
  return args.operands == Operands::kE4m3
             ? NarrowRowsToE4m3(values, args.in)
             : Narrow(values, DTypeOf(args.element));
}

absl::Status CheckFailed(const absl::Status& status, int32_t ordinal,
                         const ProductArgs& args) {
  return absl::Status(
      status.code(),
      absl::StrCat("cuda:", ordinal, ": checking the algorithm of products ",
                   KeyText(KeyOf(args)), ": ", status.message()));
}

}  // namespace

int FastestOf(const std::vector<std::vector<double>>& seconds) {
  std::vector<double> best;
  for (const std::vector<double>& times : seconds) {
    best.resize(std::max(best.size(), times.size()), HUGE_VAL);
    for (size_t i = 0; i < times.size(); ++i)
      best[i] = std::min(best[i], times[i]);
  }
  int fastest = -1;
  double least = HUGE_VAL;
  for (size_t c = 0; c < seconds.size(); ++c) {
    if (seconds[c].empty()) continue;
    double slowdown = 0;
    for (size_t i = 0; i < seconds[c].size(); ++i)
      slowdown += std::log(seconds[c][i] / best[i]);
    if (slowdown >= least) continue;
    least = slowdown;
    fastest = static_cast<int>(c);
  }
  return fastest;
}

TunedProducts::TunedProducts(std::unique_ptr<AlgorithmLibrary> library,
                             std::shared_ptr<TuningStore> store,
                             std::shared_ptr<Runtime> runtime, int32_t ordinal,
                             std::function<double()> clock)
    : library_(std::move(library)),
      store_(std::move(store)),
      runtime_(std::move(runtime)),
      ordinal_(ordinal),
      clock_(clock == nullptr ? &HostClock : std::move(clock)) {}

absl::StatusOr<std::unique_ptr<Product>> TunedProducts::Create(
    const ProductArgs& args) {
  const int used = runtime_->UseDevice(ordinal_);
  if (used != 0)
    return RuntimeError(runtime_.get(), used, "choosing the device");
  const absl::StatusOr<Algorithm> algorithm = Choose(args);
  if (!algorithm.ok()) return algorithm.status();
  return library_->Create(args, *algorithm);
}

absl::StatusOr<Algorithm> TunedProducts::Choose(const ProductArgs& args) {
  const ProductKey key = KeyOf(args);
  const Algorithm* served = store_->Served(key);
  if (served == nullptr) {
    absl::StatusOr<Algorithm> chosen = ChooseFirst(args);
    if (chosen.ok()) store_->Serve(key, *chosen);
    return chosen;
  }
  const absl::Status good = library_->Check(args, *served);
  if (good.ok()) return *served;
  if (!absl::IsInvalidArgument(good)) return CheckFailed(good, ordinal_, args);
  return absl::InternalError(absl::StrCat(
      "cuda:", ordinal_, ": ", name(), " refuses the algorithm that products ",
      KeyText(key), " are served with already: ", good.message(),
      "; by another one a text would have other bits on this card"));
}

absl::StatusOr<bool> TunedProducts::Takes(const ProductArgs& args,
                                          const Algorithm& kept) {
  const absl::Status good = library_->Check(args, kept);
  if (good.ok()) return true;
  if (!absl::IsInvalidArgument(good)) return CheckFailed(good, ordinal_, args);
  store_->AddNote(absl::StrCat("warning: the kept choice for ",
                               KeyText(KeyOf(args)),
                               " is not used: ", good.message()));
  return false;
}

absl::StatusOr<Algorithm> TunedProducts::ChooseFirst(const ProductArgs& args) {
  const ProductKey key = KeyOf(args);
  Algorithm refused;
  if (const Algorithm* kept = store_->Kept(key)) {
    const absl::StatusOr<bool> takes = Takes(args, *kept);
    if (!takes.ok()) return takes.status();
    if (*takes) return *kept;
    refused = *kept;
  }
  const absl::StatusOr<std::vector<Algorithm>> candidates =
      library_->Candidates(args);
  if (!candidates.ok()) return candidates.status();
  if (candidates->empty()) {
    return absl::UnimplementedError(
        absl::StrCat(name(), " has no algorithm for products ", KeyText(key)));
  }
  if (!store_->Timed()) return candidates->front();
  const absl::StatusOr<Algorithm> fastest = ChooseByTime(args, *candidates);
  if (absl::IsDataLoss(fastest.status())) return fastest.status();
  if (!fastest.ok()) {
    store_->AddNote(absl::StrCat("warning: products ", KeyText(key),
                                 " could not be timed, the first choice of ",
                                 name(),
                                 " is taken: ", fastest.status().message()));
    return candidates->front();
  }
  // Each turn but the last finds what another process kept since the turn
  // before, and the library refuses it.
  while (const Algorithm* kept = store_->Keep(key, *fastest, refused)) {
    if (*kept == *fastest) return *fastest;
    const absl::StatusOr<bool> takes = Takes(args, *kept);
    if (!takes.ok()) return takes.status();
    if (*takes) return *kept;
    refused = *kept;
  }
  return candidates->front();
}

absl::StatusOr<Algorithm> TunedProducts::ChooseByTime(
    const ProductArgs& args, const std::vector<Algorithm>& candidates) {
  const double start = clock_();
  const std::vector<char> input = SomeInput(args);
  const auto input_bytes = static_cast<int64_t>(input.size());
  DeviceBuffer x, y;
  OwnedStream stream;
  absl::Status status = stream.Take(runtime_.get());
  if (status.ok())
    status = x.Take(runtime_.get(), input_bytes, "a product to time");
  if (status.ok()) {
    status = y.Take(runtime_.get(),
                    kMostRows * args.out * DTypeBytes(DTypeOf(args.element)),
                    "a product to time");
  }
  if (!status.ok()) return status;
  const int code =
      runtime_->CopyToDeviceAndWait(input.data(), input_bytes, x.data());
  if (code != 0) return RuntimeError(runtime_.get(), code, "input to time");
  std::vector<std::vector<double>> seconds;
  for (const Algorithm& candidate : candidates) {
    const absl::StatusOr<std::vector<double>> times =
        Time(args, candidate, x.data(), y.data(), stream.get());
    if (absl::IsDataLoss(times.status())) return times.status();
    if (!times.ok()) status = times.status();
    seconds.push_back(times.ok() ? *times : std::vector<double>());
  }
  const int fastest = FastestOf(seconds);
  if (fastest < 0) return status;
  store_->AddNote(absl::StrCat("products ", KeyText(KeyOf(args)), ": number ",
                               fastest + 1, " of ", candidates.size(),
                               " algorithms was the fastest; ",
                               absl::StrFormat("%.2f s", clock_() - start)));
  return candidates[fastest];
}

absl::StatusOr<std::vector<double>> TunedProducts::Time(
    const ProductArgs& args, const Algorithm& algorithm, const void* x, void* y,
    Stream stream) {
  const absl::Status good = library_->Check(args, algorithm);
  if (!good.ok()) return good;
  const absl::StatusOr<std::unique_ptr<Product>> product =
      library_->Create(args, algorithm);
  if (!product.ok()) return product.status();
  std::vector<double> seconds;
  for (const int64_t rows : kRows) {
    double least = HUGE_VAL;
    for (int repeat = 0; repeat <= kRepeats; ++repeat) {
      const double start = clock_();
      const int runs = repeat == 0 ? 1 : kRuns;  // first a warm-up
      for (int run = 0; run < runs; ++run) {
        const absl::Status status = (*product)->Run(x, rows, y, stream);
        if (!status.ok()) return status;
      }
      const int code = runtime_->Synchronize(stream);
      if (code != 0)
        return RuntimeError(runtime_.get(), code, "timing a product");
      if (repeat > 0) least = std::min(least, (clock_() - start) / runs);
    }
    seconds.push_back(std::max(least, 1e-9));
  }
  return seconds;
}

}  // namespace cuda
}  // namespace encoderd
