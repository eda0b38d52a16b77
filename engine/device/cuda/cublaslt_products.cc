#include "engine/device/cuda/cublaslt_products.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/device/cuda/cublaslt_descriptions.h"

namespace encoderd {
namespace cuda {
namespace {

// Counts of rows that the library is asked about; the first one's first answer
// is taken where nothing is timed: a middling batch. Small batches are bound by
// launches and weights anyway.
constexpr int64_t kAskedRows[] = {4096, 128, 1024, 8192};
constexpr int kAnswers = 8;  // to each
// An algorithm serves all counts of rows if it serves these.
constexpr int64_t kCheckedRows[] = {1, 7, 128, 1024, 8192};

// Row-major y [T,out] = x [T,in] W^T is, column by column,
// y' [out,T] = (W' [in,out])^T x' [in,T].
class CublasLtProduct : public Product {
 public:
  CublasLtProduct(std::shared_ptr<const Handle> library,
                  const ProductArgs& args)
      : library_(std::move(library)),
        args_(args),
        x_type_(OperandTypeOf(args)),
        y_type_(ResultTypeOf(args)),
        weight_(library_->lt),
        operation_(*library_) {}

  absl::Status Describe();
  // What the library offers for `rows` rows, its first choice first.
  absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> Ask(int64_t rows) const;
  absl::Status Check(const cublasLtMatmulAlgo_t& algorithm) const;
  void Use(const cublasLtMatmulAlgo_t& algorithm) { algorithm_ = algorithm; }
  const cublasLtMatmulAlgo_t& algorithm() const { return algorithm_; }

  absl::Status Run(const void* x, int64_t rows, void* y,
                   Stream stream) const override {
    const CublasLt& lt = library_->lt;
    Layout from(lt), to(lt);
    cublasStatus_t status = from.Make(x_type_, args_.in, rows);
    if (status == CUBLAS_STATUS_SUCCESS)
      status = to.Make(y_type_, args_.out, rows);
    if (status != CUBLAS_STATUS_SUCCESS)
      return library_->Check(status, "a layout");
    // The scales of x are part of a description.
    const bool e4m3 = args_.operands == Operands::kE4m3;
    Description own(*library_);
    if (e4m3) {
      const absl::Status made = own.Make(args_, ScalesOf(x, rows, args_.in));
      if (!made.ok()) return made;
    }
    const float one = 1.0f, zero = 0.0f;
    return library_->Check(
        lt.cublasLtMatmul(library_->handle, e4m3 ? own.get() : operation_.get(),
                          &one, args_.weight, weight_.get(), x, from.get(),
                          &zero, y, to.get(), y, to.get(), &algorithm_, nullptr,
                          0, static_cast<cudaStream_t>(stream)),
        "a product");
  }

 private:
  const std::shared_ptr<const Handle> library_;
  const ProductArgs args_;
  const cudaDataType x_type_, y_type_;
  Layout weight_;  // [in,out]
  // In e4m3 only to ask with: the weight's scales stand in for those of x.
  Description operation_;
  cublasLtMatmulAlgo_t algorithm_ = {};
};

absl::Status CublasLtProduct::Describe() {
  absl::Status status =
      operation_.Make(args_, ScalesOf(args_.weight, args_.out, args_.in));
  status.Update(
      library_->Check(weight_.Make(x_type_, args_.in, args_.out), "a layout"));
  return status;
}

// Without workspace and partial sums the order of a row's sum is fixed by the
// algorithm alone.
bool AddsNoPartialSums(const CublasLt& lt,
                       const cublasLtMatmulAlgo_t& algorithm) {
  int32_t split = 0;
  uint32_t reduction = 0;
  size_t written = 0;
  return lt.cublasLtMatmulAlgoConfigGetAttribute(
             &algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &split, sizeof(split),
             &written) == CUBLAS_STATUS_SUCCESS &&
         lt.cublasLtMatmulAlgoConfigGetAttribute(
             &algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &reduction,
             sizeof(reduction), &written) == CUBLAS_STATUS_SUCCESS &&
         split <= 1 && reduction == CUBLASLT_REDUCTION_SCHEME_NONE;
}

// cublasLtMatmulAlgoCheck's words for an algorithm that is not for this product
// or this card; its others are of the check itself.
bool Refuses(cublasStatus_t checked) {
  return checked == CUBLAS_STATUS_INVALID_VALUE ||
         checked == CUBLAS_STATUS_NOT_SUPPORTED ||
         checked == CUBLAS_STATUS_ARCH_MISMATCH;
}

absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> CublasLtProduct::Ask(
    int64_t rows) const {
  const CublasLt& lt = library_->lt;
  Layout from(lt), to(lt);
  absl::Status status =
      library_->Check(from.Make(x_type_, args_.in, rows), "a layout");
  status.Update(library_->Check(to.Make(y_type_, args_.out, rows), "a layout"));
  cublasLtMatmulPreference_t preference = nullptr;
  status.Update(library_->Check(lt.cublasLtMatmulPreferenceCreate(&preference),
                                "a preference"));
  if (!status.ok()) return status;
  const uint64_t workspace_bytes = 0;
  const uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_NONE;
  status.Update(
      library_->Check(lt.cublasLtMatmulPreferenceSetAttribute(
                          preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                          &workspace_bytes, sizeof(workspace_bytes)),
                      "a preference"));
  status.Update(library_->Check(
      lt.cublasLtMatmulPreferenceSetAttribute(
          preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction,
          sizeof(reduction)),
      "a preference"));
  cublasLtMatmulHeuristicResult_t found[kAnswers] = {};
  int count = 0;
  if (status.ok()) {
    status = library_->Check(
        lt.cublasLtMatmulAlgoGetHeuristic(
            library_->handle, operation_.get(), weight_.get(), from.get(),
            to.get(), to.get(), preference, kAnswers, found, &count),
        "asking for an algorithm");
  }
  lt.cublasLtMatmulPreferenceDestroy(preference);
  if (!status.ok()) return status;
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < count; ++i) {
    if (found[i].state == CUBLAS_STATUS_SUCCESS &&
        AddsNoPartialSums(lt, found[i].algo))
      algorithms.push_back(found[i].algo);
  }
  return algorithms;
}

absl::Status CublasLtProduct::Check(
    const cublasLtMatmulAlgo_t& algorithm) const {
  const CublasLt& lt = library_->lt;
  if (!AddsNoPartialSums(lt, algorithm))
    return absl::InvalidArgumentError("it adds partial sums");
  for (const int64_t rows : kCheckedRows) {
    Layout from(lt), to(lt);
    absl::Status status =
        library_->Check(from.Make(x_type_, args_.in, rows), "a layout");
    status.Update(
        library_->Check(to.Make(y_type_, args_.out, rows), "a layout"));
    if (!status.ok()) return status;
    cublasLtMatmulHeuristicResult_t result = {};
    const cublasStatus_t checked = lt.cublasLtMatmulAlgoCheck(
        library_->handle, operation_.get(), weight_.get(), from.get(), to.get(),
        to.get(), &algorithm, &result);
    status = library_->Check(checked, "checking an algorithm");
    if (Refuses(checked)) return absl::InvalidArgumentError(status.message());
    if (!status.ok()) return status;
    if (result.workspaceSize != 0)
      return absl::InvalidArgumentError("it takes workspace");
  }
  return absl::OkStatus();
}

Algorithm BytesOf(const cublasLtMatmulAlgo_t& algorithm) {
  return Algorithm(reinterpret_cast<const char*>(&algorithm),
                   sizeof(algorithm));
}

class CublasLtLibrary : public AlgorithmLibrary {
 public:
  explicit CublasLtLibrary(std::shared_ptr<const Handle> handle)
      : handle_(std::move(handle)) {}

  std::string name() const override {
    return absl::StrCat("cuBLASLt ", handle_->lt.cublasLtGetVersion());
  }

  absl::StatusOr<std::vector<Algorithm>> Candidates(
      const ProductArgs& args) override {
    if (args.epilogue == Epilogue::kBiasGeluErf)
      return absl::UnimplementedError("cuBLASLt has no exact GELU");
    CublasLtProduct product(handle_, args);
    absl::Status status = product.Describe();
    if (!status.ok()) return status;
    std::vector<Algorithm> candidates;
    for (const int64_t rows : kAskedRows) {
      const auto answers = product.Ask(rows);
      if (!answers.ok()) {
        status.Update(answers.status());
        continue;
      }
      for (const cublasLtMatmulAlgo_t& answer : *answers) {
        const Algorithm bytes = BytesOf(answer);
        if (std::find(candidates.begin(), candidates.end(), bytes) ==
            candidates.end())
          candidates.push_back(bytes);
      }
    }
    if (!candidates.empty()) return candidates;
    if (!status.ok()) return status;
    return absl::UnimplementedError(absl::StrCat(
        "cuBLASLt has no algorithm without partial sums for products of ",
        args.in, " by ", args.out));
  }

  absl::Status Check(const ProductArgs& args,
                     const Algorithm& algorithm) override {
    const auto product = Make(args, algorithm);
    return product.ok() ? (*product)->Check((*product)->algorithm())
                        : product.status();
  }

  absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args, const Algorithm& algorithm) override {
    auto product = Make(args, algorithm);
    if (!product.ok()) return product.status();
    return std::unique_ptr<Product>(*std::move(product));
  }

 private:
  absl::StatusOr<std::unique_ptr<CublasLtProduct>> Make(
      const ProductArgs& args, const Algorithm& algorithm) const {
    cublasLtMatmulAlgo_t known;
    if (algorithm.size() != sizeof(known)) {
      return absl::InvalidArgumentError(
          absl::StrCat("an algorithm has ", sizeof(known), " bytes, not ",
                       algorithm.size()));
    }
    std::memcpy(&known, algorithm.data(), sizeof(known));
    auto product = absl::make_unique<CublasLtProduct>(handle_, args);
    const absl::Status status = product->Describe();
    if (!status.ok()) return status;
    product->Use(known);
    return product;
  }

  const std::shared_ptr<const Handle> handle_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> NewCublasLtLibrary() {
  absl::StatusOr<const CublasLt*> functions = LoadCublasLt();
  if (!functions.ok()) return functions.status();
  auto handle = std::make_shared<Handle>(**functions);
  absl::Status status =
      handle->Check(handle->lt.cublasLtCreate(&handle->handle), "a new handle");
  if (!status.ok()) return status;
  return std::unique_ptr<AlgorithmLibrary>(
      absl::make_unique<CublasLtLibrary>(std::move(handle)));
}

}  // namespace cuda
}  // namespace encoderd
