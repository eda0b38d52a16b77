// What the device computes of a request: units, each one sequence. An input is
// one unit; a text that is too long and asked for in windows is one for each
// window; an input at fault is none.
//
// Plain functions over plain values, no thread: a unit is written by one thread
// at a time (Call).
#ifndef ENCODERD_SERVER_PIPELINE_UNITS_H_
#define ENCODERD_SERVER_PIPELINE_UNITS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/batch.h"
#include "engine/session.h"
#include "server/pipeline/input_encoder.h"
#include "server/pipeline/pipeline.h"

namespace encoderd {

struct Unit {
  int32_t input = 0;
  TokenSequence sequence;
  int64_t weight = 1;         // of a window: its tokens without special ones
  std::vector<float> values;  // what the device gave; [H] or [rows,H]
  int64_t rows = 1;
};

// Units of all inputs, in order; takes the sequences out of *inputs.
std::vector<Unit> MakeUnits(const WindowRule& rule,
                            std::vector<EncodedInput>* inputs);

// What the device is to give for a unit of `input`: of a window, its vector
// before it is normalised.
SequenceOutput UnitOutput(const SequenceOutput& output,
                          const EncodedInput& input);

// Copies what the device gave for a unit of `input`, of states only the rows
// that the request takes.
void TakeValues(const EncodeRules& rules, const SequenceOutput& output,
                const EncodedInput& input, absl::Span<const float> values,
                Unit* unit);

// The answers of all inputs from what the device gave for their units, in the
// order of MakeUnits; takes the values.
std::vector<InputResult> JoinUnits(const std::vector<EncodedInput>& inputs,
                                   bool normalize, std::vector<Unit>* units);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_UNITS_H_
