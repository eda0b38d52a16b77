#include "server/pipeline/units.h"

#include <utility>

namespace encoderd {

std::vector<Unit> MakeUnits(std::vector<EncodedInput>* inputs) {
  std::vector<Unit> units;
  units.reserve(inputs->size());
  for (size_t i = 0; i < inputs->size(); ++i) {
    EncodedInput& input = (*inputs)[i];
    if (!input.status.ok()) continue;
    Unit unit;
    unit.input = static_cast<int32_t>(i);
    unit.sequence = std::move(input.sequence);
    units.push_back(std::move(unit));
  }
  return units;
}

std::vector<InputResult> JoinUnits(const std::vector<EncodedInput>& inputs,
                                   const SequenceOutput& output,
                                   std::vector<Unit>* units) {
  const bool states = output.kind == SequenceOutput::Kind::kStates;
  std::vector<InputResult> results(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    results[i].status = inputs[i].status;
    results[i].token_count = inputs[i].token_count;
    results[i].truncated = inputs[i].truncated;
  }
  for (Unit& unit : *units) {
    InputResult& result = results[unit.input];
    if (!result.status.ok()) continue;
    result.rows = states ? unit.sequence.size() : 1;
    result.values = std::move(unit.values);
  }
  return results;
}

}  // namespace encoderd
