// The dot product for sums on the host, which are short. Thread-safe: a plain
// function. (Products of a pass are the devices'; cpu/dot.h has their blocks.)
#ifndef ENCODERD_ENGINE_BASE_DOT_H_
#define ENCODERD_ENGINE_BASE_DOT_H_

#include <cstdint>

namespace encoderd {

// Sums in eight lanes of float: quick, and in an order that only the size
// decides; the lanes' sums are added in double.
double Dot(const float* a, const float* b, int64_t size);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_BASE_DOT_H_
