// What cuBLASLt is asked and told, over functions of the test's own.
#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <vector>

#include "engine/device/cuda/products/cublaslt_products.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr ProductArgs kArgs = {DType::kBF16,      64,      128,
                               Epilogue::kBias,   nullptr, nullptr,
                               Operands::kElement};

// An algorithm of the fake library: its number, in the first bytes.
struct Offered {
  int32_t split = 1;
  uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_NONE;
  cublasStatus_t checked = CUBLAS_STATUS_SUCCESS;
  size_t workspace = 0;
};

struct Product1 {  // a call of cublasLtMatmul
  float beta;
  const void* c;
  const void* d;
  const void* workspace;
  size_t workspace_bytes;
};

// What the functions below have been told, and answer with. They are plain
// functions, as cuBLASLt's are, so it is the test program's.
struct Fake {
  std::vector<Offered> offered;
  std::map<int, uint32_t> preferences;
  std::vector<uint32_t> workspaces;  // that algorithms were asked for with
  std::vector<Product1> products;
  int alive = 0;  // handles, descriptions, layouts, preferences
};
Fake fake;

template <typename T>
cublasStatus_t Made(T* made) {
  ++fake.alive;
  *made = reinterpret_cast<T>(&fake);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t Gone() {
  --fake.alive;
  return CUBLAS_STATUS_SUCCESS;
}

cublasLtMatmulAlgo_t Numbered(size_t number) {
  cublasLtMatmulAlgo_t algorithm = {};
  algorithm.data[0] = number;
  return algorithm;
}

cublasStatus_t FakeSetPreference(cublasLtMatmulPreference_t,
                                 cublasLtMatmulPreferenceAttributes_t name,
                                 const void* value, size_t bytes) {
  uint32_t number = 0;
  std::memcpy(&number, value, std::min(bytes, sizeof(number)));
  fake.preferences[name] = number;
  if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    fake.workspaces.push_back(number);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t FakeHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                             cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                             cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                             cublasLtMatmulPreference_t, int wanted,
                             cublasLtMatmulHeuristicResult_t* results,
                             int* count) {
  *count = 0;
  for (size_t i = 0; i < fake.offered.size() && *count < wanted; ++i) {
    if (fake.offered[i].workspace > fake.workspaces.back()) continue;
    results[*count].algo = Numbered(i);
    results[(*count)++].state = CUBLAS_STATUS_SUCCESS;
  }
  return *count == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t FakeConfig(const cublasLtMatmulAlgo_t* algorithm,
                          cublasLtMatmulAlgoConfigAttributes_t name,
                          void* value, size_t bytes, size_t* written) {
  const Offered& offered = fake.offered.at(algorithm->data[0]);
  const int32_t number = name == CUBLASLT_ALGO_CONFIG_SPLITK_NUM ? offered.split
                         : name == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME
                             ? static_cast<int32_t>(offered.reduction)
                             : 60 + static_cast<int32_t>(algorithm->data[0]);
  std::memcpy(value, &number, std::min(bytes, sizeof(number)));
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t FakeCheck(cublasLtHandle_t, cublasLtMatmulDesc_t,
                         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                         const cublasLtMatmulAlgo_t* algorithm,
                         cublasLtMatmulHeuristicResult_t* result) {
  const Offered& offered = fake.offered.at(algorithm->data[0]);
  result->workspaceSize = offered.workspace;
  return offered.checked;
}

cublasStatus_t FakeMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*,
                          const void*, cublasLtMatrixLayout_t, const void*,
                          cublasLtMatrixLayout_t, const void* beta,
                          const void* c, cublasLtMatrixLayout_t, void* d,
                          cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*,
                          void* workspace, size_t workspace_bytes,
                          cudaStream_t) {
  fake.products.push_back(
      {*static_cast<const float*>(beta), c, d, workspace, workspace_bytes});
  return CUBLAS_STATUS_SUCCESS;
}

CublasLt Functions() {
  CublasLt lt;
  lt.cublasLtCreate = [](cublasLtHandle_t* handle) { return Made(handle); };
  lt.cublasLtDestroy = [](cublasLtHandle_t) { return Gone(); };
  lt.cublasLtGetStatusName = [](cublasStatus_t) { return "a status"; };
  lt.cublasLtGetVersion = []() -> size_t { return 130000; };
  lt.cublasLtMatmul = FakeMatmul;
  lt.cublasLtMatmulAlgoCheck = FakeCheck;
  lt.cublasLtMatmulAlgoConfigGetAttribute = FakeConfig;
  lt.cublasLtMatmulAlgoGetHeuristic = FakeHeuristic;
  lt.cublasLtMatmulDescCreate = [](cublasLtMatmulDesc_t* made,
                                   cublasComputeType_t,
                                   cudaDataType_t) { return Made(made); };
  lt.cublasLtMatmulDescDestroy = [](cublasLtMatmulDesc_t) { return Gone(); };
  lt.cublasLtMatmulDescSetAttribute =
      [](cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void*,
         size_t) { return CUBLAS_STATUS_SUCCESS; };
  lt.cublasLtMatmulPreferenceCreate = [](cublasLtMatmulPreference_t* made) {
    return Made(made);
  };
  lt.cublasLtMatmulPreferenceDestroy = [](cublasLtMatmulPreference_t) {
    return Gone();
  };
  lt.cublasLtMatmulPreferenceSetAttribute = FakeSetPreference;
  lt.cublasLtMatrixLayoutCreate = [](cublasLtMatrixLayout_t* made, cudaDataType,
                                     uint64_t, uint64_t,
                                     int64_t) { return Made(made); };
  lt.cublasLtMatrixLayoutDestroy = [](cublasLtMatrixLayout_t) {
    return Gone();
  };
  lt.cublasLtMatrixLayoutSetAttribute =
      [](cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void*,
         size_t) { return CUBLAS_STATUS_SUCCESS; };
  return lt;
}

class CublasLtTest : public ::testing::Test {
 protected:
  CublasLtTest() {
    fake = Fake();
    library_ = NewCublasLtLibrary(functions_).value();
  }
  ~CublasLtTest() override {
    library_.reset();
    EXPECT_EQ(fake.alive, 0);
  }
  // The numbers of the algorithms that it offers for `rows` rows.
  std::vector<uint64_t> Candidates(const ProductArgs& args = kArgs) {
    std::vector<uint64_t> numbers;
    const auto offered = library_->Candidates(args, 128);
    EXPECT_TRUE(offered.ok()) << offered.status();
    for (const Algorithm& algorithm : *offered) {
      cublasLtMatmulAlgo_t known;
      std::memcpy(&known, algorithm.data(), sizeof(known));
      numbers.push_back(known.data[0]);
    }
    return numbers;
  }
  static Algorithm Bytes(size_t number) {
    const cublasLtMatmulAlgo_t algorithm = Numbered(number);
    return Algorithm(reinterpret_cast<const char*>(&algorithm),
                     sizeof(algorithm));
  }

  const CublasLt functions_ = Functions();
  std::unique_ptr<AlgorithmLibrary> library_;
};

TEST_F(CublasLtTest, OffersNothingThatAddsPartialSums) {
  fake.offered.resize(5);
  fake.offered[0].split = 0;
  fake.offered[1].split = 3;
  fake.offered[2].split = -2;  // stream-K
  fake.offered[3].reduction = CUBLASLT_REDUCTION_SCHEME_INPLACE;
  EXPECT_THAT(Candidates(), ElementsAre(4));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(library_->Check(kArgs, Bytes(i), {1}).message(),
              "it adds partial sums");
  }
  EXPECT_TRUE(library_->Check(kArgs, Bytes(4), {1}).ok());
}

TEST_F(CublasLtTest, AsksForTheAlignmentThatOperandsHave) {
  fake.offered.resize(1);
  EXPECT_THAT(Candidates(), SizeIs(1));
  for (const auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    EXPECT_EQ(fake.preferences.at(name), uint32_t{kOperandAlignment});
}

TEST_F(CublasLtTest, PrefersNoWorkspaceAndTakesNoMoreThanItTells) {
  fake.offered.resize(1);
  fake.offered[0].workspace = 4;
  EXPECT_THAT(Candidates(), ElementsAre(0));  // nothing else is offered
  fake.offered.resize(2);
  fake.workspaces.clear();
  EXPECT_THAT(Candidates(), ElementsAre(1, 0));  // each once
  EXPECT_THAT(fake.workspaces, ElementsAre(0, library_->workspace_bytes()));
  fake.offered[1].workspace = library_->workspace_bytes();
  EXPECT_TRUE(library_->Check(kArgs, Bytes(1), {1}).ok());
  ++fake.offered[1].workspace;
  EXPECT_EQ(library_->Check(kArgs, Bytes(1), {7}).message(),
            "it takes 1048577 bytes of workspace for 7 rows; at most 1048576");
}

TEST_F(CublasLtTest, LetsAProductOverwriteTheWorkspaceOfItsStream) {
  fake.offered.resize(1);
  const auto product = library_->Create(kArgs, Bytes(0)).value();
  char x = 0, y = 0, workspace = 0;
  ASSERT_TRUE(
      product->Run(&x, 3, &y, OpStream(nullptr, false, &workspace)).ok());
  ASSERT_TRUE(product->Run(&x, 3, &y, nullptr).ok());
  ASSERT_THAT(fake.products, SizeIs(2));
  EXPECT_EQ(fake.products[0].workspace, &workspace);
  EXPECT_EQ(fake.products[0].workspace_bytes, library_->workspace_bytes());
  EXPECT_EQ(fake.products[1].workspace_bytes, 0U);
}

TEST_F(CublasLtTest, TellsARefusalFromACheckThatFailed) {
  fake.offered.resize(4);
  fake.offered[0].checked = CUBLAS_STATUS_NOT_SUPPORTED;
  fake.offered[1].workspace = library_->workspace_bytes() + 1;
  fake.offered[2].checked = CUBLAS_STATUS_ALLOC_FAILED;
  EXPECT_TRUE(
      absl::IsInvalidArgument(library_->Check(kArgs, Bytes(0), {1, 7})));
  EXPECT_TRUE(absl::IsInvalidArgument(library_->Check(kArgs, Bytes(1), {1})));
  EXPECT_TRUE(absl::IsInternal(library_->Check(kArgs, Bytes(2), {1})));
  EXPECT_TRUE(library_->Check(kArgs, Bytes(3), {1, 7, 8192}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(library_->Check(kArgs, "short", {1})));
}

TEST_F(CublasLtTest, AddsTheResidualByBeta) {
  fake.offered.resize(1);
  const auto product = library_->Create(kArgs, Bytes(0)).value();
  EXPECT_TRUE(product->adds_residual());
  char x = 0, y = 0, residual = 0;
  ASSERT_TRUE(product->Run(&x, 3, &y, nullptr).ok());
  ASSERT_TRUE(product->RunAdding(&x, 3, &residual, &y, nullptr).ok());
  ASSERT_THAT(fake.products, SizeIs(2));
  EXPECT_EQ(fake.products[0].beta, 0.0f);
  EXPECT_EQ(fake.products[0].c, &y);
  EXPECT_EQ(fake.products[1].beta, 1.0f);
  EXPECT_EQ(fake.products[1].c, &residual);
  EXPECT_EQ(fake.products[1].d, &y);
  ProductArgs relu = kArgs;
  relu.epilogue = Epilogue::kBiasRelu;
  EXPECT_FALSE(library_->Create(relu, Bytes(0)).value()->adds_residual());
}

TEST_F(CublasLtTest, DescribesAnAlgorithmAndHasNoExactGelu) {
  fake.offered.resize(3);
  EXPECT_EQ(library_->Describe(Bytes(2)),
            "algorithm 62 (tile 62, stages 62, cluster 62)");
  EXPECT_EQ(library_->name(), "cuBLASLt 130000");
  ProductArgs gelu = kArgs;
  gelu.epilogue = Epilogue::kBiasGeluErf;
  EXPECT_TRUE(absl::IsUnimplemented(library_->Candidates(gelu, 1).status()));
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
