#include "engine/checkpoint/layer_spec.h"

#include <cmath>
#include <vector>

namespace encoderd {

RotationRows RowsOf(const Rotation& rotation, int64_t rows) {
  const int64_t pairs = rotation.dims / 2;
  const HostMatrix zeros = {rows, pairs, std::vector<float>(rows * pairs)};
  RotationRows table = {zeros, zeros};
  for (int64_t i = 0; i < pairs; ++i) {
    const float exponent =
        static_cast<float>(2 * i) / static_cast<float>(rotation.dims);
    const float frequency =
        1.0f / static_cast<float>(std::pow(rotation.theta, exponent));
    for (int64_t p = 0; p < rows; ++p) {
      const double angle = static_cast<float>(p) * frequency;
      table.cos.data[p * pairs + i] = static_cast<float>(std::cos(angle));
      table.sin.data[p * pairs + i] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

}  // namespace encoderd
