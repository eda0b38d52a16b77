// What a card and its libraries can do, without the engine; one JSON object a
// line on stdout.
//
// card_bench ceilings|shapes [--device=cuda|cuda:N] [--dtype=bf16|fp16|fp32]
//     [--model=minilm|bert-base|bert-large]
//
// ceilings: the rate of a copy and of one product of 8192^3.
// shapes: every product of the model's layers alone at each bucket of rows,
//     with its algorithm; that rows keep their bits at 1 to 8192 rows is shown
//     first, and one that does not keep them is named.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "engine/device/cuda/host/cudart_runtime.h"
#include "engine/device/cuda/host/narrow.h"
#include "engine/device/cuda/products/bucketed_product.h"
#include "engine/device/cuda/products/cublaslt_products.h"
#include "engine/device/cuda/products/cutlass_products.h"
#include "tests/bench/card_ceilings.h"
#include "tests/bench/card_products.h"

namespace encoderd {
namespace {

struct Options {
  std::string what;
  int32_t ordinal = 0;
  DType dtype = DType::kBF16;
  int64_t hidden = 384;
  int64_t inner = 1536;
};

[[noreturn]] void Fail(absl::string_view message) {
  std::cerr << "card_bench: " << message << "\n";
  std::exit(1);
}

Options Parse(int argc, char** argv) {
  const std::map<std::string, DType> dtypes = {
      {"bf16", DType::kBF16}, {"fp16", DType::kF16}, {"fp32", DType::kF32}};
  const std::map<std::string, std::pair<int64_t, int64_t>> models = {
      {"minilm", {384, 1536}},
      {"bert-base", {768, 3072}},
      {"bert-large", {1024, 4096}}};
  Options options;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    bool known = true;
    if (absl::ConsumePrefix(&argument, "--device=cuda")) {
      known =
          argument.empty() || (absl::ConsumePrefix(&argument, ":") &&
                               absl::SimpleAtoi(argument, &options.ordinal));
    } else if (absl::ConsumePrefix(&argument, "--dtype=")) {
      const auto found = dtypes.find(std::string(argument));
      known = found != dtypes.end();
      if (known) options.dtype = found->second;
    } else if (absl::ConsumePrefix(&argument, "--model=")) {
      const auto found = models.find(std::string(argument));
      known = found != models.end();
      if (known) std::tie(options.hidden, options.inner) = found->second;
    } else {
      known = argument == "ceilings" || argument == "shapes";
      options.what = std::string(argument);
    }
    if (!known)
      Fail(std::string("unknown argument ") + argv[i] +
           "; the top of card_bench.cc has all");
  }
  if (options.what.empty()) Fail("say what: ceilings or shapes");
  return options;
}

void PrintCeilings(const Options& options) {
  const auto ceilings = MeasureCardCeilings(options.ordinal, options.dtype);
  if (!ceilings.ok()) Fail(ceilings.status().message());
  std::printf(
      "{\"ceiling\": \"copy of 1 GiB\", \"gigabytes_per_second\": "
      "%.0f}\n{\"ceiling\": \"product of 8192^3\", \"dtype\": \"%s\", "
      "\"tflops\": %.1f}\n",
      1e-9 * ceilings->bytes_per_second, DTypeName(options.dtype),
      1e-12 * ceilings->flops);
}

void PrintShapes(const Options& options) {
  const auto runtime = cuda::NewCudartRuntime();
  cuda::Card card;
  int code = runtime->UseDevice(options.ordinal);
  if (code == 0) code = runtime->Describe(options.ordinal, &card);
  if (code != 0) Fail(runtime->ErrorText(code));
  const auto products = cuda::LayerProducts(cuda::ElementOf(options.dtype),
                                            options.hidden, options.inner);
  const auto measure =
      [&](absl::StatusOr<std::unique_ptr<cuda::AlgorithmLibrary>> library) {
        if (absl::IsUnimplemented(library.status())) return;
        if (!library.ok()) Fail(library.status().message());
        cuda::MeasureProducts(
            runtime, options.ordinal, *std::move(library), products,
            cuda::FullBatchRows(card.multiprocessors),
            [](const std::string& line) { std::cout << line << std::endl; });
      };
  measure(cuda::NewCublasLtLibrary());
  measure(cuda::NewCutlassLibrary(card));
}

}  // namespace
}  // namespace encoderd

int main(int argc, char** argv) {
  const encoderd::Options options = encoderd::Parse(argc, argv);
  options.what == "ceilings" ? encoderd::PrintCeilings(options)
                             : encoderd::PrintShapes(options);
}
