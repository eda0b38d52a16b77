#include "server/pipeline/sequences.h"

#include <utility>

#include "absl/types/span.h"
#include "engine/base/pooling.h"

namespace encoderd {
namespace {

std::vector<int32_t> CutWindow(const std::vector<int32_t>& whole,
                               const TokenizedInput& input,
                               const TextRange& range) {
  if (whole.empty()) return {};
  const auto text = whole.begin() + input.text_begin;
  std::vector<int32_t> cut(whole.begin(), text);
  cut.insert(cut.end(), text + range.begin, text + range.end);
  cut.insert(cut.end(), text + input.text_tokens, whole.end());
  return cut;
}

void AddWindows(const WindowRule& rule, int32_t index, TokenizedInput* input,
                std::vector<Sequence>* sequences) {
  const TokenSequence whole = std::move(input->sequence);
  for (int64_t k = 0; k < input->windows; ++k) {
    const TextRange range = WindowAt(rule, input->text_tokens, k);
    Sequence sequence;
    sequence.input = index;
    sequence.ids.token_ids = CutWindow(whole.token_ids, *input, range);
    sequence.ids.segment_ids = CutWindow(whole.segment_ids, *input, range);
    sequence.weight = range.end - range.begin;
    sequences->push_back(std::move(sequence));
  }
}

// The windows' vectors averaged, in double and in their order, so that the bits
// depend on nothing else.
std::vector<float> Average(absl::Span<const Sequence> windows, bool normalize) {
  std::vector<double> sums(windows[0].values.size(), 0.0);
  double weights = 0;
  for (const Sequence& window : windows) {
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

Sequences::Sequences(const PipelineRequest& request)
    : output_(request.output),
      without_special_tokens_(request.without_special_tokens),
      errors_per_input_(request.errors_per_input) {}

std::vector<int32_t> Sequences::Start(const WindowRule& windows,
                                      std::vector<TokenizedInput> inputs) {
  inputs_ = std::move(inputs);
  sequences_.reserve(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    TokenizedInput& input = inputs_[i];
    if (!input.status.ok()) continue;
    if (input.windows > 0) {
      AddWindows(windows, static_cast<int32_t>(i), &input, &sequences_);
      continue;
    }
    Sequence sequence;
    sequence.input = static_cast<int32_t>(i);
    sequence.ids = std::move(input.sequence);
    sequences_.push_back(std::move(sequence));
  }
  std::vector<int32_t> lengths;
  lengths.reserve(sequences_.size());
  for (const Sequence& sequence : sequences_) {
    lengths.push_back(static_cast<int32_t>(sequence.ids.size()));
  }
  return lengths;
}

SequenceOutput Sequences::output(int32_t index) const {
  SequenceOutput own = output_;
  if (inputs_[sequences_[index].input].windows > 0) own.normalize = false;
  return own;
}

void Sequences::Deliver(int32_t index, absl::Span<const float> values) {
  Sequence& sequence = sequences_[index];
  const bool states = output_.kind == SequenceOutput::Kind::kStates;
  if (!states || !without_special_tokens_) {
    sequence.values.assign(values.begin(), values.end());
    sequence.rows = states ? sequence.ids.size() : 1;
    return;
  }
  const auto width = static_cast<int64_t>(values.size()) / sequence.ids.size();
  sequence.rows = 0;
  sequence.values.clear();
  for (const TextRange& range : inputs_[sequence.input].span) {
    sequence.rows += range.end - range.begin;
    sequence.values.insert(sequence.values.end(),
                           values.begin() + range.begin * width,
                           values.begin() + range.end * width);
  }
}

bool Sequences::Fail(int32_t index, const absl::Status& status) {
  if (!errors_per_input_) return false;
  MutexLock lock(&mutex_);
  absl::Status& error = inputs_[sequences_[index].input].status;
  if (error.ok()) error = status;
  return true;
}

std::vector<InputResult> Sequences::Join() {
  std::vector<InputResult> results(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    results[i].status = inputs_[i].status;
    results[i].token_count = inputs_[i].token_count;
    results[i].truncated = inputs_[i].truncated;
    results[i].windows = inputs_[i].windows;
  }
  for (size_t at = 0; at < sequences_.size(); ++at) {
    Sequence& sequence = sequences_[at];
    InputResult& result = results[sequence.input];
    const int64_t windows = inputs_[sequence.input].windows;
    if (windows > 0) {
      if (result.status.ok()) {
        result.values =
            Average(absl::MakeConstSpan(sequences_).subspan(at, windows),
                    output_.normalize);
      }
      at += windows - 1;
      continue;
    }
    if (!result.status.ok()) continue;
    result.rows = sequence.rows;
    result.values = std::move(sequence.values);
  }
  return results;
}

void Sequences::Clear() {
  std::vector<TokenizedInput>().swap(inputs_);
  std::vector<Sequence>().swap(sequences_);
}

}  // namespace encoderd
