#include "engine/device/cuda/products/proof_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace encoderd {
namespace cuda {
namespace {

constexpr int64_t kWeightPeriod = 256;

// Of both signs, from 2^least to 2^(most+1), evenly by powers of two.
class WideValues {
 public:
  explicit WideValues(uint32_t seed) : random_(seed) {}

  float Next(int least, int most) {
    const uint32_t bits = random_();
    const int power = least + static_cast<int>(bits % (most - least + 1));
    const float fraction = static_cast<float>(bits >> 9 & 0x7fff) * 0x1p-15f;
    return std::ldexp(1.0f + fraction, power) *
           ((bits & 1U << 31) != 0 ? -1.0f : 1.0f);
  }

 private:
  std::mt19937 random_;
};

// Columns of which k and k + Pairs(in) cancel; the rest are small.
int64_t Pairs(int64_t in) { return in / 2 - in / 16 - 1; }

void FillCancelling(int64_t in, int64_t rows, int64_t distinct,
                    ProofMatrices* made) {
  WideValues x(1), weight(2);
  const int64_t pairs = Pairs(in);
  for (int64_t r = 0; r < rows; ++r) {
    float* row = &made->x[r * in];
    for (int64_t k = 0; k < in; ++k)
      row[k] = k < 2 * pairs ? x.Next(-6, 6) : x.Next(-4, 4);
    for (int64_t k = 0; k < pairs; ++k) row[k + pairs] = row[k];
  }
  for (int64_t c = 0; c < distinct; ++c) {
    float* row = &made->weight[c * in];
    for (int64_t k = 0; k < in; ++k)
      row[k] = k < 2 * pairs ? weight.Next(-8, 2) : weight.Next(-20, -14);
    for (int64_t k = 0; k < pairs; ++k) row[k + pairs] = -row[k];
  }
}

void FillTypical(int64_t in, int64_t rows, int64_t distinct,
                 ProofMatrices* made) {
  WideValues x(4), weight(5);
  const int most = -static_cast<int>(std::ceil(std::log2(in) / 2));
  for (int64_t i = 0; i < rows * in; ++i) made->x[i] = x.Next(-4, 0);
  for (int64_t i = 0; i < distinct * in; ++i)
    made->weight[i] = weight.Next(most - 4, most);
}

}  // namespace

ProofMatrices MakeProofMatrices(ProofValues values, const ProductArgs& args,
                                int64_t rows) {
  const bool typical = values == ProofValues::kTypical;
  const int64_t distinct = std::min(kWeightPeriod, args.out);
  ProofMatrices made;
  made.x.resize(rows * args.in);
  made.weight.resize(args.out * args.in);
  typical ? FillTypical(args.in, rows, distinct, &made)
          : FillCancelling(args.in, rows, distinct, &made);
  for (int64_t c = distinct; c < args.out; ++c) {
    std::copy_n(made.weight.begin() + c % distinct * args.in, args.in,
                made.weight.begin() + c * args.in);
  }
  // Those for bits are as small as the sums, so that they hide none of theirs.
  const int scale = typical ? -5 : -17;
  for (int64_t c = 0; c < args.out; ++c) {
    made.bias.push_back(
        std::ldexp(static_cast<float>(c * 37 % 101 - 50), scale));
  }
  WideValues residual(3);
  for (int64_t i = 0; i < rows * args.out; ++i)
    made.residual.push_back(typical ? residual.Next(-6, 1)
                                    : residual.Next(-16, -10));
  return made;
}

std::vector<double> RowNorms(const std::vector<float>& values, int64_t cols) {
  std::vector<double> norms;
  for (size_t first = 0; first < values.size(); first += cols) {
    double squares = 0;
    for (int64_t c = 0; c < cols; ++c)
      squares += double{values[first + c]} * values[first + c];
    norms.push_back(std::sqrt(squares));
  }
  return norms;
}

std::vector<char> RepeatRows(const std::vector<char>& period, int64_t rows,
                             Operands operands, int64_t first, int64_t count) {
  const int64_t each = static_cast<int64_t>(period.size()) / rows;
  std::vector<char> bytes(count * each);
  const bool e4m3 = operands == Operands::kE4m3;
  const int64_t values = e4m3 ? each - 4 : each;  // behind them the scales
  for (int64_t r = 0; r < count; ++r) {
    const int64_t from = (first + r) % rows;
    std::memcpy(&bytes[r * values], &period[from * values], values);
    if (!e4m3) continue;
    std::memcpy(&bytes[count * values + 4 * r],
                &period[rows * values + 4 * from], 4);
  }
  return bytes;
}

}  // namespace cuda
}  // namespace encoderd
