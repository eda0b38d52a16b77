// What products are proved on. Pure; the same at every start.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_PROOF_VALUES_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_PROOF_VALUES_H_

#include <cstdint>
#include <vector>

#include "engine/device/cuda/products/products.h"

namespace encoderd {
namespace cuda {

enum class ProofValues {
  // For bits. Terms of both signs, spread over 22 powers of two; all but a few
  // small ones cancel in pairs that lie far apart. What is left is the rounding
  // of the partial sums: a sum in another order has other bits in nearly every
  // value.
  kCancelling,
  // For results within a bound. Sums of about 1 of terms spread over 10 powers
  // of two, so that the order of a sum changes little.
  kTypical,
};

struct ProofMatrices {
  std::vector<float> x;         // [rows,in]
  std::vector<float> weight;    // [out,in]; rows repeat after 256
  std::vector<float> bias;      // [out], of few bits
  std::vector<float> residual;  // [rows,out]
};
ProofMatrices MakeProofMatrices(ProofValues values, const ProductArgs& args,
                                int64_t rows);

// |row| of each row of `cols` values.
std::vector<double> RowNorms(const std::vector<float>& values, int64_t cols);

// `count` rows from row `first` on of rows that repeat; `period` as the card
// has them: values of `row_bytes` a row, or in e4m3, whose scales lie behind
// the codes.
std::vector<char> RepeatRows(const std::vector<char>& period, int64_t rows,
                             Operands operands, int64_t first, int64_t count);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_PROOF_VALUES_H_
