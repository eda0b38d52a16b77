// A golden file: inputs as ids and what the reference implementation makes of
// them (layout: generate.py).
#ifndef ENCODERD_TESTS_GOLDEN_GOLDEN_H_
#define ENCODERD_TESTS_GOLDEN_GOLDEN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/batch.h"

namespace encoderd {

struct GoldenStates {
  int64_t sequence = 0;
  int32_t layer = 0;
  std::vector<float> values;  // [n,H]
};

struct Golden {
  std::vector<TokenSequence> sequences;
  std::vector<std::vector<float>> pooled;  // [B][H]
  std::vector<GoldenStates> states;
};

// data/NAME.safetensors.
absl::StatusOr<Golden> ReadGolden(const std::string& name);

// How far two vectors are apart.
struct Difference {
  double max_difference = 0;
  double largest = 0;  // largest value of the reference
  double cosine = 1;
};
Difference Compare(const float* values, const std::vector<float>& reference);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_GOLDEN_GOLDEN_H_
