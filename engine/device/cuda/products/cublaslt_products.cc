#include "engine/device/cuda/products/cublaslt_products.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/device/cuda/products/cublaslt_descriptions.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int kAnswers = 8;  // to each question
// On an H200 all algorithms for 16 bits took 4 bytes of it, once a product has
// more tiles than the card has multiprocessors.
constexpr size_t kWorkspaceBytes = size_t{1} << 20;

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
  // What the library offers for `rows` rows and at most this workspace, its
  // first choice first.
  absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> Ask(
      int64_t rows, size_t workspace_bytes) const;
  absl::Status Check(const cublasLtMatmulAlgo_t& algorithm,
                     absl::Span<const int64_t> counts) const;
  void Use(const cublasLtMatmulAlgo_t& algorithm) { algorithm_ = algorithm; }
  const cublasLtMatmulAlgo_t& algorithm() const { return algorithm_; }

  absl::Status Run(const void* x, int64_t rows, void* y,
                   const OpStream& stream) const override {
    return Multiply(x, rows, nullptr, y, stream);
  }
  bool adds_residual() const override {
    return args_.epilogue == Epilogue::kBias ||
           args_.epilogue == Epilogue::kNone;
  }
  absl::Status RunAdding(const void* x, int64_t rows, const void* residual,
                         void* y, const OpStream& stream) const override {
    return Multiply(x, rows, residual, y, stream);
  }

 private:
  // residual null: none is added.
  absl::Status Multiply(const void* x, int64_t rows, const void* residual,
                        void* y, const OpStream& stream) const;

  const std::shared_ptr<const Handle> library_;
  const ProductArgs args_;
  const cudaDataType x_type_, y_type_;
  Layout weight_;  // [in,out]
  // In e4m3 only for the request: the weight's scales replace those of x.
  Description operation_;
  cublasLtMatmulAlgo_t algorithm_ = {};
};

absl::Status CublasLtProduct::Multiply(const void* x, int64_t rows,
                                       const void* residual, void* y,
                                       const OpStream& stream) const {
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
  const float one = 1.0f;
  const float added = residual == nullptr ? 0.0f : 1.0f;  // beta
  const void* const c = residual == nullptr ? y : residual;
  return library_->Check(
      lt.cublasLtMatmul(library_->handle, e4m3 ? own.get() : operation_.get(),
                        &one, args_.weight, weight_.get(), x, from.get(),
                        &added, c, to.get(), y, to.get(), &algorithm_,
                        stream.workspace,
                        stream.workspace == nullptr ? 0 : kWorkspaceBytes,
                        static_cast<cudaStream_t>(stream.stream)),
      "a product");
}

absl::Status CublasLtProduct::Describe() {
  absl::Status status =
      operation_.Make(args_, ScalesOf(args_.weight, args_.out, args_.in));
  status.Update(
      library_->Check(weight_.Make(x_type_, args_.in, args_.out), "a layout"));
  return status;
}

// Without partial sums the order of a row's sum is fixed by the algorithm
// alone; ProductProof shows it. -2 splits is stream-K, whose partial sums
// depend on the tiles that a product has.
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
         split == 1 && reduction == CUBLASLT_REDUCTION_SCHEME_NONE;
}

// cublasLtMatmulAlgoCheck's words for an algorithm that is not for this product
// or this card; its others are of the check itself.
bool Refuses(cublasStatus_t checked) {
  return checked == CUBLAS_STATUS_INVALID_VALUE ||
         checked == CUBLAS_STATUS_NOT_SUPPORTED ||
         checked == CUBLAS_STATUS_ARCH_MISMATCH;
}

absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> CublasLtProduct::Ask(
    int64_t rows, size_t workspace_bytes) const {
  const CublasLt& lt = library_->lt;
  Layout from(lt), to(lt);
  absl::Status status =
      library_->Check(from.Make(x_type_, args_.in, rows), "a layout");
  status.Update(library_->Check(to.Make(y_type_, args_.out, rows), "a layout"));
  cublasLtMatmulPreference_t preference = nullptr;
  status.Update(library_->Check(lt.cublasLtMatmulPreferenceCreate(&preference),
                                "a preference"));
  if (!status.ok()) return status;
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                          auto value) {
    status.Update(
        library_->Check(lt.cublasLtMatmulPreferenceSetAttribute(
                            preference, attribute, &value, sizeof(value)),
                        "a preference"));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{workspace_bytes});
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE});
  for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(attribute, static_cast<uint32_t>(kOperandAlignment));
  cublasLtMatmulHeuristicResult_t found[kAnswers] = {};
  int count = 0;
  if (status.ok()) {
    const cublasStatus_t asked = lt.cublasLtMatmulAlgoGetHeuristic(
        library_->handle, operation_.get(), weight_.get(), from.get(), to.get(),
        to.get(), preference, kAnswers, found, &count);
    // Its word for none within the workspace.
    if (asked != CUBLAS_STATUS_NOT_SUPPORTED)
      status = library_->Check(asked, "requesting an algorithm");
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

absl::Status CublasLtProduct::Check(const cublasLtMatmulAlgo_t& algorithm,
                                    absl::Span<const int64_t> counts) const {
  const CublasLt& lt = library_->lt;
  if (!AddsNoPartialSums(lt, algorithm))
    return absl::InvalidArgumentError("it adds partial sums");
  for (const int64_t rows : counts) {
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
    if (result.workspaceSize > kWorkspaceBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "it takes ", result.workspaceSize, " bytes of workspace for ", rows,
          " rows; at most ", kWorkspaceBytes));
    }
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

  int64_t workspace_bytes() const override {
    return static_cast<int64_t>(kWorkspaceBytes);
  }

  absl::StatusOr<std::vector<Algorithm>> Candidates(const ProductArgs& args,
                                                    int64_t rows) override {
    if (args.epilogue == Epilogue::kBiasGeluErf)
      return absl::UnimplementedError("cuBLASLt has no erf GELU");
    CublasLtProduct product(handle_, args);
    absl::Status status = product.Describe();
    if (!status.ok()) return status;
    std::vector<Algorithm> candidates;
    for (const size_t workspace_bytes : {size_t{0}, kWorkspaceBytes}) {
      const auto answers = product.Ask(rows, workspace_bytes);
      if (!answers.ok()) return answers.status();
      for (const cublasLtMatmulAlgo_t& answer : *answers) {
        Algorithm algorithm = BytesOf(answer);
        if (std::find(candidates.begin(), candidates.end(), algorithm) ==
            candidates.end())
          candidates.push_back(std::move(algorithm));
      }
    }
    return candidates;
  }

  absl::Status Check(const ProductArgs& args, const Algorithm& algorithm,
                     absl::Span<const int64_t> rows) override {
    const auto product = Make(args, algorithm);
    return product.ok() ? (*product)->Check((*product)->algorithm(), rows)
                        : product.status();
  }

  std::string Describe(const Algorithm& algorithm) const override {
    cublasLtMatmulAlgo_t known;
    if (algorithm.size() != sizeof(known)) return "no algorithm";
    std::memcpy(&known, algorithm.data(), sizeof(known));
    const auto number = [&](cublasLtMatmulAlgoConfigAttributes_t attribute,
                            auto value) {
      size_t written = 0;
      handle_->lt.cublasLtMatmulAlgoConfigGetAttribute(
          &known, attribute, &value, sizeof(value), &written);
      return static_cast<int64_t>(value);
    };
    return absl::StrCat(
        "algorithm ", number(CUBLASLT_ALGO_CONFIG_ID, int32_t{-1}), " (tile ",
        number(CUBLASLT_ALGO_CONFIG_TILE_ID, uint32_t{0}), ", stages ",
        number(CUBLASLT_ALGO_CONFIG_STAGES_ID, uint32_t{0}), ", cluster ",
        number(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, uint16_t{0}), ")");
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
    auto product = std::make_unique<CublasLtProduct>(handle_, args);
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
  return NewCublasLtLibrary(**functions);
}

absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> NewCublasLtLibrary(
    const CublasLt& functions) {
  auto handle = std::make_shared<Handle>(functions);
  absl::Status status =
      handle->Check(handle->lt.cublasLtCreate(&handle->handle), "a new handle");
  if (!status.ok()) return status;
  return std::unique_ptr<AlgorithmLibrary>(
      std::make_unique<CublasLtLibrary>(std::move(handle)));
}

}  // namespace cuda
}  // namespace encoderd
