#include "engine/device/cuda/products/gelu_products.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/device/cuda/host/memory.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr double kSteepest = 1.13;  // of GELU

// The product, then bias and GELU in a separate pass. bias: float, on the card.
ProductProof::RunRows PlainGelu(const Product& plain, const ProductArgs& args,
                                const void* bias, Runtime* runtime) {
  return [=, &plain](const void* x, int64_t rows, void* y,
                     const OpStream& stream) -> absl::Status {
    absl::Status status = plain.Run(x, rows, y, stream);
    if (!status.ok()) return status;
    const BiasActivationOp activation = {Activation::kGeluErf,
                                         static_cast<const float*>(bias),
                                         {y, rows, args.out, args.element}};
    const int code = Start(activation, stream);
    return code == 0 ? absl::OkStatus()
                     : RuntimeError(runtime, code, "bias_gelu");
  };
}

}  // namespace

absl::StatusOr<double> GeluDifference(ProductProof* plain_proof,
                                      const Product& plain,
                                      ProductProof* fused_proof,
                                      const Product& fused) {
  const int64_t rows =
      std::min(ProductProof::kPeriod, plain_proof->most_rows());
  const auto sums = plain_proof->Values(ProductProof::Plain(plain), rows);
  if (!sums.ok()) return sums.status();
  const auto want = plain_proof->Values(
      PlainGelu(plain, plain_proof->args(), fused_proof->args().bias,
                plain_proof->runtime()),
      rows);
  if (!want.ok()) return want.status();
  const auto got = fused_proof->Values(ProductProof::Plain(fused), rows);
  if (!got.ok()) return got.status();
  const int64_t out = plain_proof->args().out;
  double worst = 0;
  for (int64_t i = 0; i < rows * out; ++i) {
    const double sum = (*sums)[i];
    const double bound = plain_proof->Epsilon() *
                             (kSteepest * std::fabs(sum) +
                              2 * std::fabs(sum + fused_proof->Bias(i % out))) +
                         kSteepest * plain_proof->SumBound(i / out, i % out) +
                         2 * plain_proof->LeastStep();
    const double ratio = std::fabs(double{(*got)[i]} - (*want)[i]) / bound;
    worst = std::isnan(ratio) ? HUGE_VAL : std::max(worst, ratio);
  }
  return worst;
}

GeluProducts::GeluProducts(std::unique_ptr<ProductFactory> plain,
                           std::unique_ptr<ProductFactory> fused,
                           std::shared_ptr<Runtime> runtime, int32_t ordinal,
                           int64_t most_rows,
                           std::shared_ptr<Agreement> agreement)
    : plain_(std::move(plain)),
      fused_(std::move(fused)),
      runtime_(std::move(runtime)),
      ordinal_(ordinal),
      most_rows_(most_rows),
      agreement_(std::move(agreement)) {}

std::string GeluProducts::name() const {
  return absl::StrCat(plain_->name(), ", ", fused_->name());
}

std::vector<std::string> GeluProducts::TakeNotes() {
  std::vector<std::string> notes = plain_->TakeNotes();
  for (std::vector<std::string> more :
       {std::exchange(notes_, {}), fused_->TakeNotes()}) {
    for (std::string& note : more) notes.push_back(std::move(note));
  }
  return notes;
}

absl::StatusOr<std::unique_ptr<Product>> GeluProducts::Create(
    const ProductArgs& args) {
  if (args.epilogue != Epilogue::kBiasGeluErf) return plain_->Create(args);
  const ProductKey key = KeyOf(args);
  auto found = proved_.find(key);
  if (found == proved_.end()) {
    const absl::Status proved = Prove(args);
    if (!proved.ok() && !absl::IsUnimplemented(proved)) return proved;
    const std::string what = absl::StrCat("products ", KeyText(key));
    const absl::Status agreed = agreement_->Add(what, proved.ok(), ordinal_);
    if (!agreed.ok()) return agreed;
    if (!proved.ok()) {
      notes_.push_back(
          absl::StrCat(what, ": ", plain_->name(),
                       " and bias_gelu serve: ", proved.message()));
    }
    found = proved_.emplace(key, proved).first;
  }
  if (!found->second.ok()) return found->second;
  return fused_->Create(args);
}

absl::Status GeluProducts::Prove(const ProductArgs& args) {
  const int used = runtime_->UseDevice(ordinal_);
  if (used != 0)
    return RuntimeError(runtime_.get(), used, "choosing the device");
  // The algorithms first: that gives back what choosing them takes.
  const auto chosen = fused_->Create(args);
  if (!chosen.ok()) return chosen.status();
  ProductArgs plain_args = args;
  plain_args.epilogue = Epilogue::kNone;
  plain_args.bias = nullptr;
  const auto plain_chosen = plain_->Create(plain_args);
  if (!plain_chosen.ok()) return plain_chosen.status();

  const int64_t rows = std::min(ProductProof::kPeriod, most_rows_);
  const auto plain_proof =
      ProductProof::Create(runtime_.get(), plain_args, rows,
                           plain_->workspace_bytes(), ProofValues::kTypical);
  if (!plain_proof.ok()) return plain_proof.status();
  const auto fused_proof =
      ProductProof::Create(runtime_.get(), args, rows,
                           fused_->workspace_bytes(), ProofValues::kTypical);
  if (!fused_proof.ok()) return fused_proof.status();
  const auto plain = plain_->Create((*plain_proof)->args());
  if (!plain.ok()) return plain.status();
  const auto fused = fused_->Create((*fused_proof)->args());
  if (!fused.ok()) return fused.status();
  const absl::StatusOr<double> difference =
      GeluDifference(plain_proof->get(), **plain, fused_proof->get(), **fused);
  if (!difference.ok()) return difference.status();
  const std::string figures = absl::StrFormat(
      "the fused epilogue differs by %.3g of its bound", *difference);
  if (*difference > 1) return absl::UnimplementedError(figures);
  notes_.push_back(absl::StrCat("products ", KeyText(KeyOf(args)), ": ",
                                fused_->name(), " serves: ", figures));
  return absl::OkStatus();
}

}  // namespace cuda
}  // namespace encoderd
