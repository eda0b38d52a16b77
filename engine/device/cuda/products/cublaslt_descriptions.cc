#include "engine/device/cuda/products/cublaslt_descriptions.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace encoderd {
namespace cuda {
namespace {

cudaDataType TypeOf(DType element) {
  switch (element) {
    case DType::kF16:
      return CUDA_R_16F;
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kF32:
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
    case Epilogue::kBiasGeluErf:  // none: refused before it comes here
    case Epilogue::kNone:
      break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

cudaDataType ResultTypeOf(const ProductArgs& args) {
  return TypeOf(args.element);
}

cudaDataType OperandTypeOf(const ProductArgs& args) {
  return args.operands == Operands::kE4m3 ? CUDA_R_8F_E4M3
                                          : TypeOf(args.element);
}

absl::Status Handle::Check(cublasStatus_t status, const char* what) const {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string message =
      absl::StrCat("cuBLASLt: ", what, ": ", lt.cublasLtGetStatusName(status));
  // Its kernel failed: the context is as lost as after a kernel of ours.
  return status == CUBLAS_STATUS_EXECUTION_FAILED
             ? absl::DataLossError(message)
             : absl::InternalError(message);
}

absl::Status Description::Make(const ProductArgs& args, const float* x_scales) {
  // Plain float sums: fp32 products never as TF32.
  absl::Status status =
      library_.Check(library_.lt.cublasLtMatmulDescCreate(
                         &operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                     "a description");
  if (!status.ok()) return status;
  status.Update(Set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T));
  status.Update(Set(CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(args.epilogue)));
  if (args.epilogue != Epilogue::kNone)
    status.Update(Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, args.bias));
  if (args.operands == Operands::kE4m3)
    status.Update(SetScales(args, x_scales));
  return status;
}

absl::Status Description::SetScales(const ProductArgs& args,
                                    const float* x_scales) {
#if CUBLAS_VERSION < 120900
  return absl::UnimplementedError(absl::StrCat(
      "fp8 products need cuBLAS 12.9; this was compiled for ", CUBLAS_VER_MAJOR,
      ".", CUBLAS_VER_MINOR,
      "; build with a newer CUDA toolkit, or choose products dtype"));
#else
  absl::Status status;
  const int32_t by_row = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
  const float* weight_scales = ScalesOf(args.weight, args.out, args.in);
  status.Update(Set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, by_row));
  status.Update(Set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, by_row));
  status.Update(Set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, weight_scales));
  status.Update(Set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, x_scales));
  // Sums in float to the end, not in the tensor cores' own shorter ones.
  status.Update(Set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t{0}));
  return status;
#endif
}

}  // namespace cuda
}  // namespace encoderd
