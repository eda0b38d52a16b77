#include "server/pipeline/units.h"

#include <utility>

#include "absl/types/span.h"
#include "engine/base/pooling.h"

namespace encoderd {

namespace {

std::vector<int32_t> CutWindow(const std::vector<int32_t>& whole,
                               const EncodedInput& input,
                               const TextRange& range) {
  if (whole.empty()) return {};
  const auto text = whole.begin() + input.text_begin;
  std::vector<int32_t> cut(whole.begin(), text);
  cut.insert(cut.end(), text + range.begin, text + range.end);
  cut.insert(cut.end(), text + input.text_tokens, whole.end());
  return cut;
}

void AddWindows(const WindowRule& rule, int32_t index, EncodedInput* input,
                std::vector<Unit>* units) {
  const TokenSequence whole = std::move(input->sequence);
  for (int64_t k = 0; k < input->windows; ++k) {
    const TextRange range = WindowAt(rule, input->text_tokens, k);
    Unit unit;
    unit.input = index;
    unit.sequence.token_ids = CutWindow(whole.token_ids, *input, range);
    unit.sequence.segment_ids = CutWindow(whole.segment_ids, *input, range);
    unit.weight = range.end - range.begin;
    units->push_back(std::move(unit));
  }
}

// The windows' vectors averaged, in double and in their order, so that the bits
// depend on nothing else.
std::vector<float> Average(absl::Span<const Unit> windows, bool normalize) {
  std::vector<double> sums(windows[0].values.size(), 0.0);
  double weights = 0;
  for (const Unit& window : windows) {
    const auto weight = static_cast<double>(window.weight);
    weights += weight;
    for (size_t h = 0; h < sums.size(); ++h) {
      sums[h] += weight * static_cast<double>(window.values[h]);
    }
  }
  std::vector<float> average(sums.size());
  for (size_t h = 0; h < sums.size(); ++h) {
    average[h] = static_cast<float>(sums[h] / weights);
  }
  if (normalize) {
    NormalizeL2(average.data(), static_cast<int64_t>(average.size()));
  }
  return average;
}

}  // namespace

std::vector<Unit> MakeUnits(const WindowRule& rule,
                            std::vector<EncodedInput>* inputs) {
  std::vector<Unit> units;
  units.reserve(inputs->size());
  for (size_t i = 0; i < inputs->size(); ++i) {
    EncodedInput& input = (*inputs)[i];
    if (!input.status.ok()) continue;
    if (input.windows > 0) {
      AddWindows(rule, static_cast<int32_t>(i), &input, &units);
      continue;
    }
    Unit unit;
    unit.input = static_cast<int32_t>(i);
    unit.sequence = std::move(input.sequence);
    units.push_back(std::move(unit));
  }
  return units;
}

SequenceOutput UnitOutput(const SequenceOutput& output,
                          const EncodedInput& input) {
  SequenceOutput own = output;
  if (input.windows > 0) own.normalize = false;
  return own;
}

void TakeValues(const EncodeRules& rules, const SequenceOutput& output,
                const EncodedInput& input, absl::Span<const float> values,
                Unit* unit) {
  const bool states = output.kind == SequenceOutput::Kind::kStates;
  if (!states || !rules.without_special_tokens) {
    unit->values.assign(values.begin(), values.end());
    unit->rows = states ? unit->sequence.size() : 1;
    return;
  }
  const auto width =
      static_cast<int64_t>(values.size()) / unit->sequence.size();
  unit->rows = 0;
  unit->values.clear();
  for (const TextRange& range : input.span) {
    unit->rows += range.end - range.begin;
    unit->values.insert(unit->values.end(),
                        values.begin() + range.begin * width,
                        values.begin() + range.end * width);
  }
}

std::vector<InputResult> JoinUnits(const std::vector<EncodedInput>& inputs,
                                   bool normalize, std::vector<Unit>* units) {
  std::vector<InputResult> results(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    results[i].status = inputs[i].status;
    results[i].token_count = inputs[i].token_count;
    results[i].truncated = inputs[i].truncated;
    results[i].windows = inputs[i].windows;
  }
  for (size_t at = 0; at < units->size(); ++at) {
    Unit& unit = (*units)[at];
    InputResult& result = results[unit.input];
    const int64_t windows = inputs[unit.input].windows;
    if (windows > 0) {
      if (result.status.ok()) {
        result.values = Average(
            absl::MakeConstSpan(*units).subspan(at, windows), normalize);
      }
      at += windows - 1;
      continue;
    }
    if (!result.status.ok()) continue;
    result.rows = unit.rows;
    result.values = std::move(unit.values);
  }
  return results;
}

}  // namespace encoderd
