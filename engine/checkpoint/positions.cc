#include "engine/checkpoint/positions.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"

namespace encoderd {
namespace {

class Learned : public PositionScheme {
 public:
  const char* name() const override { return "learned"; }
  bool has_table() const override { return true; }
  absl::StatusOr<HostTable> Rows(int64_t, int64_t,
                                 const ReadTable& read) const override {
    return read();
  }
};

class RelativeBias : public Learned {
 public:
  const char* name() const override { return "learned + relative bias"; }
  bool biases_attention() const override { return true; }
  int32_t bias_rows() const override { return kRelativeBuckets; }
  HostMatrix Biases(const HostMatrix& table, int32_t heads,
                    int64_t max_len) const override {
    const int64_t columns = 2 * max_len - 1;
    HostMatrix biases = {heads, columns, std::vector<float>(heads * columns)};
    for (int64_t column = 0; column < columns; ++column) {
      const float* row = table.Row(RelativeBucket(column - (max_len - 1)));
      for (int32_t head = 0; head < heads; ++head)
        biases.data[head * columns + column] = row[head];
    }
    return biases;
  }
};

class Sinusoidal : public PositionScheme {
 public:
  const char* name() const override { return "sinusoidal"; }
  bool has_table() const override { return false; }
  absl::StatusOr<HostTable> Rows(int64_t rows, int64_t hidden_size,
                                 const ReadTable&) const override {
    HostMatrix table = {rows, hidden_size,
                        std::vector<float>(rows * hidden_size)};
    for (int64_t p = 0; p < rows; ++p) {
      SinusoidalRow(p, hidden_size, table.data.data() + p * hidden_size);
    }
    return table;
  }
};

class Rotary : public PositionScheme {
 public:
  const char* name() const override { return "rotary"; }
  bool has_table() const override { return false; }
  bool adds_rows() const override { return false; }
  absl::StatusOr<HostTable> Rows(int64_t, int64_t hidden_size,
                                 const ReadTable&) const override {
    return HostMatrix{0, hidden_size, {}};
  }
};

struct Entry {
  const char* type;  // in config.json; nullptr: no word of it
  const PositionScheme& (*scheme)();
};
constexpr Entry kSchemes[] = {{"absolute", &LearnedPositions},
                              {"sinusoidal", &SinusoidalPositions},
                              {nullptr, &RelativeBiasPositions},
                              {nullptr, &RotaryPositions}};

}  // namespace

HostMatrix PositionScheme::Biases(const HostMatrix&, int32_t, int64_t) const {
  return {};
}

const PositionScheme& LearnedPositions() {
  static const Learned* const scheme = new Learned;
  return *scheme;
}

const PositionScheme& SinusoidalPositions() {
  static const Sinusoidal* const scheme = new Sinusoidal;
  return *scheme;
}

const PositionScheme& RelativeBiasPositions() {
  static const RelativeBias* const scheme = new RelativeBias;
  return *scheme;
}

const PositionScheme& RotaryPositions() {
  static const Rotary* const scheme = new Rotary;
  return *scheme;
}

const PositionScheme* FindPositionScheme(absl::string_view type) {
  for (const Entry& entry : kSchemes) {
    if (entry.type != nullptr && type == entry.type) return &entry.scheme();
  }
  return nullptr;
}

const PositionScheme* PositionSchemeNamed(absl::string_view name) {
  for (const Entry& entry : kSchemes) {
    if (name == entry.scheme().name()) return &entry.scheme();
  }
  return nullptr;
}

std::string SupportedPositionSchemes() {
  std::string types;
  for (const Entry& entry : kSchemes) {
    if (entry.type == nullptr) continue;
    absl::StrAppend(&types, types.empty() ? "" : ", ", entry.type);
  }
  return types;
}

int32_t RelativeBucket(int64_t distance) {
  constexpr int32_t kHalf = kRelativeBuckets / 2;  // of each direction
  constexpr int32_t kExact = kHalf / 2;
  const int32_t first = distance > 0 ? kHalf : 0;
  const int64_t far = std::abs(distance);
  if (far < kExact) return first + static_cast<int32_t>(far);
  // kExact + 8 log(far / 8) / log(128 / 8), rounded down: 2 log2(far / 8).
  int32_t bucket = kExact;
  while (bucket < kHalf - 1 && far * far >= int64_t{kExact * kExact}
                                                << (bucket - kExact + 1)) {
    ++bucket;
  }
  return first + bucket;
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
