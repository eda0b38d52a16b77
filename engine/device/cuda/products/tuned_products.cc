#include "engine/device/cuda/products/tuned_products.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/device/cuda/host/memory.h"

namespace encoderd {
namespace cuda {
namespace {

// The library is asked for a reference with these counts of rows, in order: a
// middling batch first.
constexpr int64_t kAskedRows[] = {4096, 128, 1024, 8192};
// Another algorithm serves a bucket only if it takes less than this share of
// the reference's time: less is within a clock's noise.
constexpr double kWorthwhile = 0.98;

// An error after which a start has to end; any other costs its algorithm only.
bool EndsTheStart(const absl::Status& status) {
  return absl::IsDataLoss(status);
}

absl::Status NotThisOne(const absl::Status& why) {
  return EndsTheStart(why) ? why : absl::InvalidArgumentError(why.message());
}

}  // namespace

TunedProducts::TunedProducts(std::unique_ptr<AlgorithmLibrary> library,
                             std::shared_ptr<TuningStore> store,
                             std::shared_ptr<Runtime> runtime, int32_t ordinal,
                             int64_t most_rows,
                             std::shared_ptr<Agreement> agreement)
    : library_(std::move(library)),
      store_(std::move(store)),
      runtime_(std::move(runtime)),
      ordinal_(ordinal),
      most_rows_(most_rows),
      agreement_(std::move(agreement)) {}

void TunedProducts::AddNote(const ProductArgs& args, const std::string& text) {
  store_->AddNote(absl::StrCat(library_->name(), ", products ",
                               KeyText(KeyOf(args)), ": ", text));
}

void TunedProducts::Refuse(const Algorithm& algorithm, const std::string& why) {
  if (refused_++ > 0) return;
  first_refused_ = absl::StrCat(library_->Describe(algorithm), ": ", why);
}

const ProductChoice* TunedProducts::ChoiceOf(const ProductArgs& args) const {
  const auto found = choices_.find(KeyOf(args));
  return found == choices_.end() ? nullptr : &found->second;
}

absl::StatusOr<std::unique_ptr<Product>> TunedProducts::Create(
    const ProductArgs& args) {
  const int used = runtime_->UseDevice(ordinal_);
  if (used != 0)
    return RuntimeError(runtime_.get(), used, "choosing the device");
  if (ChoiceOf(args) == nullptr) {
    const absl::StatusOr<ProductChoice> choice = Choose(args);
    if (!choice.ok()) return choice.status();
    choices_.emplace(KeyOf(args), *choice);
  }
  const ProductChoice& choice = *ChoiceOf(args);
  std::map<Algorithm, std::shared_ptr<const Product>> made;
  BucketedProduct::Parts parts;
  for (size_t bucket = 0; bucket < parts.size(); ++bucket) {
    std::shared_ptr<const Product>& product = made[choice.by_bucket[bucket]];
    if (product == nullptr) {
      absl::StatusOr<std::unique_ptr<Product>> created =
          library_->Create(args, choice.by_bucket[bucket]);
      if (!created.ok()) return created.status();
      product = *std::move(created);
    }
    parts[bucket] = product;
  }
  return std::unique_ptr<Product>(std::make_unique<BucketedProduct>(
      std::move(parts), most_rows_, choice.adds_residual));
}

absl::StatusOr<ProductChoice> TunedProducts::Choose(const ProductArgs& args) {
  const auto offered = library_->Candidates(args, kAskedRows[0]);
  if (absl::IsUnimplemented(offered.status())) return offered.status();
  refused_ = 0;
  faster_.clear();
  absl::StatusOr<std::unique_ptr<ProductProof>> proof =
      ProductProof::Create(runtime_.get(), args, most_rows_, workspace_bytes());
  if (!proof.ok()) {
    return absl::Status(
        proof.status().code(),
        absl::StrCat("cuda:", ordinal_, ": products ", KeyText(KeyOf(args)),
                     ": ", proof.status().message()));
  }
  ProductProof* const proves = proof->get();
  proves->AllowGraphs(graphs_);
  ProductChoice choice;
  absl::StatusOr<Algorithm> reference = ChooseReference(args, proves);
  if (!reference.ok()) return reference.status();
  choice.reference = *std::move(reference);
  choice.by_bucket.fill(choice.reference);
  const absl::StatusOr<std::unique_ptr<Product>> product =
      library_->Create(proves->args(), choice.reference);
  if (!product.ok()) return product.status();
  if (args.residual && (*product)->adds_residual()) {
    const absl::Status adds = proves->CheckResidual(**product);
    if (EndsTheStart(adds)) return adds;
    choice.adds_residual = adds.ok();
    if (!adds.ok()) {
      AddNote(args, absl::StrCat("the residual is added by add_layer_norm: ",
                                 adds.message()));
    }
    const absl::Status agreed = agreement_->Add(
        absl::StrCat("the residual on products ", KeyText(KeyOf(args))),
        adds.ok(), ordinal_);
    if (!agreed.ok()) return agreed;
  }
  Choices timed;
  for (size_t bucket = 0; bucket < kBucketRows.size(); ++bucket) {
    if (FewestRows(bucket) > most_rows_) break;
    absl::Status status =
        ChooseForBucket(args, bucket, proves, &choice, &timed);
    if (!status.ok()) return status;
  }
  store_->Keep(timed);
  std::string text =
      absl::StrCat(library_->Describe(choice.reference), " serves");
  for (const std::string& faster : faster_)
    absl::StrAppend(&text, "; ", faster);
  if (refused_ > 0) {
    absl::StrAppend(
        &text, "; ", refused_,
        " times an algorithm was rejected, the first: ", first_refused_);
  }
  AddNote(args, text);
  return choice;
}

absl::StatusOr<Algorithm> TunedProducts::ChooseReference(
    const ProductArgs& args, ProductProof* proof) {
  const ProductKey key = KeyOf(args);
  if (const Algorithm* served = store_->Reference(key)) {
    absl::Status status = TryReference(args, *served, proof);
    if (status.ok()) return *served;
    if (!absl::IsInvalidArgument(status)) return status;
    return absl::InternalError(absl::StrCat(
        "cuda:", ordinal_, ": ", name(),
        " rejects the algorithm that products ", KeyText(key),
        " have on another card of this process: ", status.message(),
        "; with another one a text would have different bits here"));
  }
  absl::Status why = absl::UnimplementedError("it offers no algorithm");
  std::set<Algorithm> tried;
  for (const int64_t rows : kAskedRows) {
    const absl::StatusOr<std::vector<Algorithm>> candidates =
        library_->Candidates(args, rows);
    if (!candidates.ok()) {
      if (EndsTheStart(candidates.status())) return candidates.status();
      why = candidates.status();
      continue;
    }
    for (const Algorithm& candidate : *candidates) {
      if (!tried.insert(candidate).second) continue;
      absl::Status status = TryReference(args, candidate, proof);
      if (status.ok()) {
        store_->SetReference(key, candidate);
        return candidate;
      }
      if (!absl::IsInvalidArgument(status)) return status;
      why = status;
    }
  }
  return absl::UnimplementedError(absl::StrCat(
      "cuda:", ordinal_, ": ", name(), " has no algorithm for products ",
      KeyText(key), " (", tried.size(), " tried): ", why.message()));
}

absl::Status TunedProducts::TryReference(const ProductArgs& args,
                                         const Algorithm& algorithm,
                                         ProductProof* proof) {
  absl::Status good = library_->Check(args, algorithm, kCheckedRows);
  if (absl::IsInvalidArgument(good)) return good;
  if (!good.ok()) {
    return absl::Status(
        good.code(),
        absl::StrCat("cuda:", ordinal_, ": checking the algorithm of products ",
                     KeyText(KeyOf(args)), ": ", good.message()));
  }
  const absl::StatusOr<std::unique_ptr<Product>> product =
      library_->Create(proof->args(), algorithm);
  if (!product.ok()) return NotThisOne(product.status());
  const absl::Status status = proof->SetReference(**product);
  if (status.ok()) return status;
  Refuse(algorithm, std::string(status.message()));
  return NotThisOne(status);
}

absl::Status TunedProducts::ChooseForBucket(const ProductArgs& args,
                                            size_t bucket, ProductProof* proof,
                                            ProductChoice* choice,
                                            Choices* timed) {
  ProductKey key = KeyOf(args);
  key.rows = kBucketRows[bucket];
  if (const Algorithm* kept = store_->Find(key)) {
    const absl::Status serves =
        TryForBucket(args, bucket, *kept, proof).status();
    if (EndsTheStart(serves)) return FaultOfKept(key, serves);
    if (serves.ok()) {
      choice->by_bucket[bucket] = *kept;
      return absl::OkStatus();
    }
    AddNote(args,
            absl::StrCat("warning: the stored choice for up to ", key.rows,
                         " rows does not serve: ", serves.message()));
  }
  const absl::StatusOr<double> reference =
      TimeForBucket(args, bucket, choice->reference, proof);
  if (!reference.ok()) {
    if (EndsTheStart(reference.status())) return reference.status();
    AddNote(args, absl::StrCat("warning: not timed for up to ", key.rows,
                               " rows: ", reference.status().message()));
    return absl::OkStatus();
  }
  double least = kWorthwhile * *reference;
  const absl::StatusOr<std::vector<Algorithm>> candidates =
      library_->Candidates(args, std::min(key.rows, most_rows_));
  if (EndsTheStart(candidates.status())) return candidates.status();
  if (candidates.ok()) {
    for (const Algorithm& candidate : *candidates) {
      if (candidate == choice->reference) continue;
      const absl::StatusOr<double> seconds =
          TimeForBucket(args, bucket, candidate, proof);
      if (EndsTheStart(seconds.status())) return seconds.status();
      if (!seconds.ok() || *seconds >= least) continue;
      least = *seconds;
      choice->by_bucket[bucket] = candidate;
    }
  }
  timed->emplace(key, choice->by_bucket[bucket]);
  if (choice->by_bucket[bucket] != choice->reference) {
    faster_.push_back(absl::StrCat(
        "up to ", key.rows, " rows ",
        library_->Describe(choice->by_bucket[bucket]), " in ",
        MicrosecondsText(least), " instead of ", MicrosecondsText(*reference)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Product>> TunedProducts::TryForBucket(
    const ProductArgs& args, size_t bucket, const Algorithm& algorithm,
    ProductProof* proof) {
  const int64_t most = std::min(kBucketRows[bucket], most_rows_);
  const int64_t counts[] = {FewestRows(bucket), most};
  const absl::Status good = library_->Check(args, algorithm, counts);
  if (!good.ok()) return good;
  absl::StatusOr<std::unique_ptr<Product>> product =
      library_->Create(proof->args(), algorithm);
  if (!product.ok()) return product.status();
  const absl::Status same = proof->CompareBits(**product, counts);
  if (!same.ok()) {
    Refuse(algorithm, std::string(same.message()));
    return same;
  }
  return product;
}

absl::StatusOr<double> TunedProducts::TimeForBucket(const ProductArgs& args,
                                                    size_t bucket,
                                                    const Algorithm& algorithm,
                                                    ProductProof* proof) {
  const absl::StatusOr<std::unique_ptr<Product>> product =
      TryForBucket(args, bucket, algorithm, proof);
  if (!product.ok()) return product.status();
  return proof->Seconds(**product, std::min(kBucketRows[bucket], most_rows_));
}

absl::Status TunedProducts::FaultOfKept(const ProductKey& key,
                                        const absl::Status& status) const {
  const std::string path = store_->path();
  return absl::Status(
      status.code(),
      absl::StrCat(path, path.empty() ? "" : ": ", "cuda:", ordinal_,
                   ": the algorithm stored for products ", KeyText(key),
                   " fails: ", status.message(),
                   path.empty() ? "" : "; delete the file and restart"));
}

}  // namespace cuda
}  // namespace encoderd
