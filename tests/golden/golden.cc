#include "tests/golden/golden.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/io/safetensors.h"

namespace encoderd {
namespace {

// Values of an integer or F32 tensor as T.
template <typename T>
absl::Status Read(const SafetensorsFile& file, const char* name,
                  const char* dtype, std::vector<T>* out) {
  const TensorEntry* entry = file.Find(name);
  if (entry == nullptr || entry->dtype != dtype) {
    return absl::DataLossError(absl::StrCat(name, " of ", dtype, " lacks"));
  }
  out->resize(entry->num_values());
  return file.ReadBytes(*entry, 0, out->data(),
                        static_cast<int64_t>(out->size() * sizeof(T)));
}

}  // namespace

absl::StatusOr<Golden> ReadGolden(const std::string& name) {
  const absl::StatusOr<SafetensorsFile> file =
      SafetensorsFile::Open(ENCODERD_SOURCE_DIR "/tests/golden/data",
                            absl::StrCat(name, ".safetensors"));
  if (!file.ok()) return file.status();
  std::vector<int32_t> ids, cu_seqlens, layers, sequences;
  std::vector<uint8_t> segments;
  std::vector<float> pooled, states;
  absl::Status status;
  status.Update(Read(*file, "token_ids", "I32", &ids));
  status.Update(Read(*file, "segment_ids", "U8", &segments));
  status.Update(Read(*file, "cu_seqlens", "I32", &cu_seqlens));
  status.Update(Read(*file, "state_layers", "I32", &layers));
  status.Update(Read(*file, "state_sequences", "I32", &sequences));
  status.Update(Read(*file, "pooled", "F32", &pooled));
  status.Update(Read(*file, "states", "F32", &states));
  if (!status.ok()) return status;

  Golden golden;
  const size_t count = cu_seqlens.size() - 1;
  const size_t hidden = pooled.size() / count;
  for (size_t b = 0; b < count; ++b) {
    const int32_t begin = cu_seqlens[b];
    const int32_t end = cu_seqlens[b + 1];
    golden.sequences.push_back(
        {{ids.begin() + begin, ids.begin() + end},
         {segments.begin() + begin, segments.begin() + end},
         {}});
    golden.pooled.emplace_back(pooled.begin() + b * hidden,
                               pooled.begin() + (b + 1) * hidden);
  }
  auto next = states.begin();
  for (int32_t sequence : sequences) {
    for (int32_t layer : layers) {
      const auto end = next + golden.sequences[sequence].size() * hidden;
      golden.states.push_back({sequence, layer, {next, end}});
      next = end;
    }
  }
  return golden;
}

Difference Compare(const float* values, const std::vector<float>& reference) {
  Difference difference;
  double dot = 0;
  double norm = 0;
  double reference_norm = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double a = values[i];
    const double b = reference[i];
    // Not std::max: a NaN must not vanish in it.
    if (!(std::fabs(a - b) <= difference.max_difference)) {
      difference.max_difference = std::fabs(a - b);
    }
    difference.largest = std::max(difference.largest, std::fabs(b));
    dot += a * b;
    norm += a * a;
    reference_norm += b * b;
  }
  difference.cosine = dot / std::sqrt(norm * reference_norm);
  return difference;
}

}  // namespace encoderd
