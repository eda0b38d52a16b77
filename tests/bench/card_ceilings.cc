#include "tests/bench/card_ceilings.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/device/cuda/host/cudart_runtime.h"
#include "engine/device/cuda/host/event_timer.h"
#include "engine/device/cuda/host/narrow.h"
#include "engine/device/cuda/products/cublaslt_products.h"
#include "engine/device/cuda/products/product_proof.h"

namespace encoderd {
namespace {

constexpr int64_t kCopyBytes = int64_t{1} << 30;
constexpr int64_t kSide = 8192;
constexpr int kRepeats = 10;

absl::StatusOr<double> CopyRate(cuda::Runtime* runtime) {
  cuda::DeviceBuffer from, to;
  cuda::OwnedStream stream;
  cuda::EventTimer timer;
  absl::Status status = from.Take(runtime, kCopyBytes, "a copy");
  if (status.ok()) status = to.Take(runtime, kCopyBytes, "a copy");
  if (status.ok()) status = stream.Take(runtime);
  if (status.ok()) status = timer.Take(runtime);
  if (!status.ok()) return status;
  double least = HUGE_VAL;
  for (int i = 0; i < kRepeats; ++i) {
    const absl::StatusOr<double> seconds = timer.Seconds(
        [&]() -> absl::Status {
          const int code = cudaMemcpyAsync(
              to.data(), from.data(), kCopyBytes, cudaMemcpyDeviceToDevice,
              static_cast<cudaStream_t>(stream.get()));
          return code == 0 ? absl::OkStatus()
                           : cuda::RuntimeError(runtime, code, "a copy");
        },
        stream.get());
    if (!seconds.ok()) return seconds.status();
    least = std::min(least, *seconds);
  }
  return 2.0 * static_cast<double>(kCopyBytes) / least;
}

absl::StatusOr<double> ProductRate(cuda::Runtime* runtime, DType dtype) {
  cuda::ProductArgs args;
  args.element = dtype;
  args.in = args.out = kSide;
  auto library = cuda::NewCublasLtLibrary();
  if (!library.ok()) return library.status();
  const auto proof = cuda::ProductProof::Create(runtime, args, kSide,
                                                (*library)->workspace_bytes());
  if (!proof.ok()) return proof.status();
  const auto candidates = (*library)->Candidates(args, kSide);
  if (!candidates.ok()) return candidates.status();
  double least = HUGE_VAL;
  for (const cuda::Algorithm& algorithm : *candidates) {
    const auto product = (*library)->Create((*proof)->args(), algorithm);
    if (!product.ok()) continue;
    const absl::StatusOr<double> seconds = (*proof)->Seconds(**product, kSide);
    if (absl::IsDataLoss(seconds.status())) return seconds.status();
    if (seconds.ok()) least = std::min(least, *seconds);
  }
  if (std::isinf(least))
    return absl::InternalError("no algorithm computed a product of 8192^3");
  return 2.0 * kSide * kSide * kSide / least;
}

}  // namespace

absl::StatusOr<CardCeilings> MeasureCardCeilings(int32_t ordinal, DType dtype) {
  const auto runtime = cuda::NewCudartRuntime();
  const int code = runtime->UseDevice(ordinal);
  if (code != 0) {
    return absl::UnavailableError(
        absl::StrCat("cuda:", ordinal, ": ", runtime->ErrorText(code)));
  }
  const absl::StatusOr<double> copy = CopyRate(runtime.get());
  if (!copy.ok()) return copy.status();
  const absl::StatusOr<double> product = ProductRate(runtime.get(), dtype);
  if (!product.ok()) return product.status();
  return CardCeilings{*product, *copy};
}

}  // namespace encoderd
