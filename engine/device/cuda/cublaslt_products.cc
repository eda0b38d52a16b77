#include "engine/device/cuda/cublaslt_products.h"

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/device/cuda/cublaslt_library.h"

namespace encoderd {
namespace cuda {
namespace {

// Rows for which the algorithm is chosen, once for every count of rows: a
// middling batch. Small batches are bound by launches and weights anyway.
constexpr int64_t kTypicalRows = 4096;
constexpr int kCandidates = 16;

cudaDataType TypeOf(Element element) {
  switch (element) {
    case Element::kHalf:
      return CUDA_R_16F;
    case Element::kBf16:
      return CUDA_R_16BF;
    case Element::kFloat:
      break;
  }
  return CUDA_R_32F;
}

cublasLtEpilogue_t EpilogueOf(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kBiasGeluTanh:
      return CUBLASLT_EPILOGUE_GELU_BIAS;
    case Epilogue::kBiasRelu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::kNone:
      break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

// cuBLASLt's handle, shared by the products; it may be used by many threads.
struct Library {
  explicit Library(const CublasLt& functions) : lt(functions) {}
  ~Library() {
    if (handle != nullptr) lt.cublasLtDestroy(handle);
  }
  absl::Status Check(cublasStatus_t status, const char* what) const {
    if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
    const std::string message = absl::StrCat("cuBLASLt: ", what, ": ",
                                             lt.cublasLtGetStatusName(status));
    // Its kernel failed: the context is as lost as after a kernel of ours.
    return status == CUBLAS_STATUS_EXECUTION_FAILED
               ? absl::DataLossError(message)
               : absl::InternalError(message);
  }

  const CublasLt& lt;
  cublasLtHandle_t handle = nullptr;
};

// Owner of a matrix's description, column-major [rows, cols].
class Layout {
 public:
  explicit Layout(const CublasLt& lt) : lt_(lt) {}
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  ~Layout() {
    if (layout_ != nullptr) lt_.cublasLtMatrixLayoutDestroy(layout_);
  }
  cublasStatus_t Make(cudaDataType type, int64_t rows, int64_t cols) {
    return lt_.cublasLtMatrixLayoutCreate(&layout_, type, rows, cols, rows);
  }
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  const CublasLt& lt_;
  cublasLtMatrixLayout_t layout_ = nullptr;
};

// Row-major y [T,out] = x [T,in] W^T is, column by column,
// y' [out,T] = (W' [in,out])^T x' [in,T].
class CublasLtProduct : public Product {
 public:
  CublasLtProduct(std::shared_ptr<const Library> library,
                  const ProductArgs& args)
      : library_(std::move(library)),
        args_(args),
        type_(TypeOf(args.element)),
        weight_(library_->lt) {}
  ~CublasLtProduct() override {
    if (operation_ != nullptr)
      library_->lt.cublasLtMatmulDescDestroy(operation_);
  }

  absl::Status Describe();
  absl::StatusOr<cublasLtMatmulAlgo_t> Choose() const;
  void Use(const cublasLtMatmulAlgo_t& algorithm) { algorithm_ = algorithm; }

  absl::Status Run(const void* x, int64_t rows, void* y,
                   Stream stream) const override {
    const CublasLt& lt = library_->lt;
    Layout from(lt), to(lt);
    cublasStatus_t status = from.Make(type_, args_.in, rows);
    if (status == CUBLAS_STATUS_SUCCESS)
      status = to.Make(type_, args_.out, rows);
    if (status != CUBLAS_STATUS_SUCCESS)
      return library_->Check(status, "a layout");
    const float one = 1.0f, zero = 0.0f;
    return library_->Check(
        lt.cublasLtMatmul(library_->handle, operation_, &one, args_.weight,
                          weight_.get(), x, from.get(), &zero, y, to.get(), y,
                          to.get(), &algorithm_, nullptr, 0,
                          static_cast<cudaStream_t>(stream)),
        "a product");
  }

 private:
  template <typename T>
  absl::Status Set(cublasLtMatmulDescAttributes_t attribute, T value) {
    return library_->Check(library_->lt.cublasLtMatmulDescSetAttribute(
                               operation_, attribute, &value, sizeof(value)),
                           "describing a product");
  }

  const std::shared_ptr<const Library> library_;
  const ProductArgs args_;
  const cudaDataType type_;
  Layout weight_;  // [in,out]
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_ = {};
};

absl::Status CublasLtProduct::Describe() {
  const CublasLt& lt = library_->lt;
  // Plain float sums: fp32 products never as TF32.
  absl::Status status = library_->Check(
      lt.cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
      "a description");
  if (!status.ok()) return status;
  status.Update(Set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T));
  status.Update(Set(CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(args_.epilogue)));
  if (args_.epilogue != Epilogue::kNone)
    status.Update(Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, args_.bias));
  status.Update(
      library_->Check(weight_.Make(type_, args_.in, args_.out), "a layout"));
  return status;
}

// The library's first choice that takes no workspace and adds no partial sums:
// the order of a row's sum is then fixed by the algorithm alone.
absl::StatusOr<cublasLtMatmulAlgo_t> CublasLtProduct::Choose() const {
  const CublasLt& lt = library_->lt;
  Layout from(lt), to(lt);
  absl::Status status =
      library_->Check(from.Make(type_, args_.in, kTypicalRows), "a layout");
  status.Update(
      library_->Check(to.Make(type_, args_.out, kTypicalRows), "a layout"));
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
  cublasLtMatmulHeuristicResult_t found[kCandidates] = {};
  int count = 0;
  if (status.ok()) {
    status = library_->Check(
        lt.cublasLtMatmulAlgoGetHeuristic(
            library_->handle, operation_, weight_.get(), from.get(), to.get(),
            to.get(), preference, kCandidates, found, &count),
        "asking for an algorithm");
  }
  lt.cublasLtMatmulPreferenceDestroy(preference);
  if (!status.ok()) return status;
  for (int i = 0; i < count; ++i) {
    int32_t split = 0;
    size_t written = 0;
    const cublasStatus_t known = lt.cublasLtMatmulAlgoConfigGetAttribute(
        &found[i].algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &split, sizeof(split),
        &written);
    if (found[i].state == CUBLAS_STATUS_SUCCESS &&
        known == CUBLAS_STATUS_SUCCESS && split <= 1)
      return found[i].algo;
  }
  return absl::UnimplementedError(absl::StrCat(
      "cuBLASLt has no algorithm without partial sums for products of ",
      args_.in, " by ", args_.out));
}

class CublasLtProducts : public ProductFactory {
 public:
  explicit CublasLtProducts(std::shared_ptr<const Library> library)
      : library_(std::move(library)) {}

  absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args) override {
    auto product = absl::make_unique<CublasLtProduct>(library_, args);
    absl::Status status = product->Describe();
    if (!status.ok()) return status;
    const auto key =
        std::make_tuple(args.element, args.in, args.out, args.epilogue);
    auto chosen = chosen_.find(key);
    if (chosen == chosen_.end()) {
      absl::StatusOr<cublasLtMatmulAlgo_t> algorithm = product->Choose();
      if (!algorithm.ok()) return algorithm.status();
      chosen = chosen_.emplace(key, *algorithm).first;
    }
    product->Use(chosen->second);
    return std::unique_ptr<Product>(std::move(product));
  }

  std::string name() const override {
    const size_t version = library_->lt.cublasLtGetVersion();
    return absl::StrCat("cuBLASLt ", version);
  }

 private:
  const std::shared_ptr<const Library> library_;
  std::map<std::tuple<Element, int64_t, int64_t, Epilogue>,
           cublasLtMatmulAlgo_t>
      chosen_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ProductFactory>> NewCublasLtProducts() {
  absl::StatusOr<const CublasLt*> functions = LoadCublasLt();
  if (!functions.ok()) return functions.status();
  auto library = std::make_shared<Library>(**functions);
  absl::Status status = library->Check(
      library->lt.cublasLtCreate(&library->handle), "a new handle");
  if (!status.ok()) return status;
  return std::unique_ptr<ProductFactory>(
      absl::make_unique<CublasLtProducts>(std::move(library)));
}

}  // namespace cuda
}  // namespace encoderd
