#include "engine/base/dot.h"

namespace encoderd {

double Dot(const float* a, const float* b, int64_t size) {
  constexpr int64_t kLanes = 8;
  float sums[kLanes] = {};
  const int64_t whole = size / kLanes * kLanes;
  for (int64_t h = 0; h < whole; h += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) sums[l] += a[h + l] * b[h + l];
  }
  double sum = 0;
  for (const float lane : sums) sum += lane;
  for (int64_t h = whole; h < size; ++h) sum += double{a[h]} * b[h];
  return sum;
}

}  // namespace encoderd
