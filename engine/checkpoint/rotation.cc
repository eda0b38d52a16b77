#include "engine/checkpoint/rotation.h"

#include <cmath>

namespace encoderd {

std::vector<float> RotationFrequencies(double theta, int32_t dims) {
  std::vector<float> frequencies(dims / 2);
  for (int32_t pair = 0; pair < dims / 2; ++pair) {
    const float exponent =
        static_cast<float>(2 * pair) / static_cast<float>(dims);
    frequencies[pair] =
        1.0f / static_cast<float>(std::pow(theta, double{exponent}));
  }
  return frequencies;
}

RotationTables MakeRotationTables(double theta, int32_t dims, int64_t rows) {
  const std::vector<float> frequencies = RotationFrequencies(theta, dims);
  const auto pairs = static_cast<int64_t>(frequencies.size());
  RotationTables tables;
  for (HostMatrix* table : {&tables.cos, &tables.sin}) {
    table->rows = rows;
    table->cols = pairs;
    table->data.reserve(rows * pairs);
  }
  for (int64_t position = 0; position < rows; ++position) {
    for (const float frequency : frequencies) {
      const float angle = static_cast<float>(position) * frequency;
      tables.cos.data.push_back(static_cast<float>(std::cos(double{angle})));
      tables.sin.data.push_back(static_cast<float>(std::sin(double{angle})));
    }
  }
  return tables;
}

HostMatrix RotationRows(double theta, int32_t dims, int64_t rows) {
  const RotationTables tables = MakeRotationTables(theta, dims, rows);
  HostMatrix both = {rows, dims, {}};
  both.data.reserve(rows * dims);
  for (int64_t position = 0; position < rows; ++position) {
    for (const HostMatrix* table : {&tables.cos, &tables.sin}) {
      const float* row = table->Row(position);
      both.data.insert(both.data.end(), row, row + table->cols);
    }
  }
  return both;
}

}  // namespace encoderd
