#include "tests/bench/card_products.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "engine/device/cuda/products/product_proof.h"
#include "engine/device/cuda/products/tuned_products.h"

namespace encoderd {
namespace cuda {
namespace {

std::string Quoted(absl::string_view text) {
  return absl::StrCat(
      "\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

}  // namespace

std::vector<ProductArgs> LayerProducts(DType element, int64_t hidden,
                                       int64_t inner) {
  const auto adding = [&](int64_t in) {
    ProductArgs args = {element, in, hidden, Epilogue::kBias};
    args.residual = true;
    return args;
  };
  return {{element, hidden, 3 * hidden, Epilogue::kBias},
          adding(hidden),
          {element, hidden, inner, Epilogue::kNone},
          {element, hidden, inner, Epilogue::kBiasGeluErf},
          adding(inner)};
}

void MeasureProducts(const std::shared_ptr<Runtime>& runtime, int32_t ordinal,
                     std::unique_ptr<AlgorithmLibrary> library,
                     const std::vector<ProductArgs>& products,
                     int64_t most_rows,
                     const std::function<void(const std::string&)>& print) {
  std::vector<ProductArgs> offered;
  for (const ProductArgs& args : products) {
    const auto any = library->Candidates(args, kBucketRows.back());
    if (!absl::IsUnimplemented(any.status())) offered.push_back(args);
  }
  TunedProducts tuned(std::move(library),
                      std::make_shared<TuningStore>("", TunedFor()), runtime,
                      ordinal, most_rows);
  const auto failed = [&](const ProductArgs& args, const absl::Status& why) {
    print(absl::StrCat("{\"product\": ", Quoted(KeyText(KeyOf(args))),
                       ", \"library\": ", Quoted(tuned.name()),
                       ", \"error\": ", Quoted(why.message()), "}"));
  };
  for (const ProductArgs& args : offered) {
    // Its weights are what products are created with.
    const auto proof = ProductProof::Create(runtime.get(), args, most_rows,
                                            tuned.workspace_bytes());
    if (!proof.ok()) {
      failed(args, proof.status());
      continue;
    }
    const auto product = tuned.Create((*proof)->args());
    if (!product.ok()) {
      failed(args, product.status());
      continue;
    }
    for (size_t bucket = 0; bucket < kBucketRows.size(); ++bucket) {
      if (FewestRows(bucket) > most_rows) break;
      const int64_t rows = std::min(kBucketRows[bucket], most_rows);
      const auto seconds = (*proof)->Seconds(**product, rows);
      if (!seconds.ok()) {
        failed(args, seconds.status());
        break;
      }
      const Algorithm& algorithm = tuned.ChoiceOf(args)->by_bucket[bucket];
      const double flops = 2.0 * static_cast<double>(rows) *
                           static_cast<double>(args.in * args.out);
      // Create has shown that rows keep their bits.
      print(absl::StrFormat(
          "{\"product\": %s, \"rows\": %d, \"microseconds\": %.2f, "
          "\"tflops\": %.2f, \"library\": %s, \"algorithm\": %s, "
          "\"reference\": %s, \"rows_keep_bits\": true, \"adds_residual\": "
          "%s}",
          Quoted(KeyText(KeyOf(args))), rows, 1e6 * *seconds,
          1e-12 * flops / *seconds, Quoted(tuned.name()),
          Quoted(tuned.library().Describe(algorithm)),
          algorithm == tuned.ChoiceOf(args)->reference ? "true" : "false",
          tuned.ChoiceOf(args)->adds_residual ? "true" : "false"));
    }
    for (const std::string& note : tuned.TakeNotes())
      print(absl::StrCat("{\"note\": ", Quoted(note), "}"));
  }
}

}  // namespace cuda
}  // namespace encoderd
