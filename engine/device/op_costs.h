// What an op computes and moves at least, to quote shares of a device's peaks.
// Pure.
#ifndef ENCODERD_ENGINE_DEVICE_OP_COSTS_H_
#define ENCODERD_ENGINE_DEVICE_OP_COSTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/device/ops.h"

namespace encoderd {

// What one op of a pass took on a device.
struct OpTime {
  std::string op;  // "product 384 -> 1536"
  double seconds = 0;
  double flops = 0;
  double bytes = 0;
};

// Without seconds. FLOP of products and of attention's two products, each
// multiply-add as two, of the keys within reach; bytes of every operand read
// and result written once. lengths: of the sequences that the op is about.
OpTime CostOf(const Op& op, const std::vector<int32_t>& lengths);

// Pairs of a query and a key that it sees, in a sequence of `length` tokens;
// and the keys that query `row` sees.
double PairsWithin(Reach reach, int32_t length);
double KeysWithin(Reach reach, int32_t row, int32_t length);

// Bytes of a matrix's values.
double BytesOf(const Matrix& matrix);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_OP_COSTS_H_
