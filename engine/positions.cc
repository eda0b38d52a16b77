#include "engine/positions.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace encoderd {
namespace {

class Learned : public PositionScheme {
 public:
  const char* name() const override { return "learned"; }
  bool has_table() const override { return true; }
  absl::StatusOr<HostMatrix> Rows(int64_t, int64_t,
                                  const ReadTable& read) const override {
    return read();
  }
};

class Sinusoidal : public PositionScheme {
 public:
  const char* name() const override { return "sinusoidal"; }
  bool has_table() const override { return false; }
  absl::StatusOr<HostMatrix> Rows(int64_t rows, int64_t hidden_size,
                                  const ReadTable&) const override {
    HostMatrix table = {rows, hidden_size,
                        std::vector<float>(rows * hidden_size)};
    for (int64_t p = 0; p < rows; ++p) {
      SinusoidalRow(p, hidden_size, table.data.data() + p * hidden_size);
    }
    return table;
  }
};

struct Entry {
  const char* type;  // in config.json
  const PositionScheme& (*scheme)();
};
constexpr Entry kSchemes[] = {{"absolute", &LearnedPositions},
                              {"sinusoidal", &SinusoidalPositions}};

}  // namespace

const PositionScheme& LearnedPositions() {
  static const Learned* const scheme = new Learned;
  return *scheme;
}

const PositionScheme& SinusoidalPositions() {
  static const Sinusoidal* const scheme = new Sinusoidal;
  return *scheme;
}

const PositionScheme* FindPositionScheme(absl::string_view type) {
  for (const Entry& entry : kSchemes) {
    if (type == entry.type) return &entry.scheme();
  }
  return nullptr;
}

std::string SupportedPositionSchemes() {
  std::string types;
  for (const Entry& entry : kSchemes) {
    absl::StrAppend(&types, types.empty() ? "" : ", ", entry.type);
  }
  return types;
}

void SinusoidalRow(int64_t position, int64_t hidden_size, float* out) {
  for (int64_t h = 0; h < hidden_size; ++h) {
    const double exponent =
        static_cast<double>(h - h % 2) / static_cast<double>(hidden_size);
    const double angle =
        static_cast<double>(position) / std::pow(10000.0, exponent);
    out[h] = static_cast<float>(h % 2 == 0 ? std::sin(angle) : std::cos(angle));
  }
}

}  // namespace encoderd
