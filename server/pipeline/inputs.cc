#include "server/pipeline/inputs.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "engine/base/error.h"

namespace encoderd {

Inputs::Inputs(PipelineRequest* request)
    : size_(static_cast<int64_t>(request->inputs.size())),
      rules_{request->truncate, request->window_overlap,
             request->without_special_tokens, request->ids_only.has_value(),
             request->prompt_name},
      ids_only_(request->ids_only),
      states_(request->output.kind == SequenceOutput::Kind::kStates),
      errors_per_input_(request->errors_per_input && !ids_only_),
      answer_limit_(request->answer),
      inputs_(std::move(request->inputs)),
      tokenized_(ids_only_ ? 0 : size_),
      encodings_(ids_only_ ? size_ : 0),
      left_(size_) {}

void Inputs::Tokenize(int64_t index, const InputEncoder& encoder,
                      TokenizerScratch* scratch, Encoding* buffer) {
  Input& input = inputs_[index];
  const absl::string_view content = ContentName(input);
  const absl::Status status = ids_only_.has_value()
                                  ? TokenizeOnly(index, encoder, scratch)
                                  : Encode(index, encoder, scratch, buffer);
  input = TextInput();  // the text is not needed any more
  if (status.ok()) return;
  if (errors_per_input_) {
    tokenized_[index].status =
        WithAdvice(MakeInputFault(index, content, status).status);
  } else if (CountFault(index)) {
    AddFault(MakeInputFault(index, content, status));
  }
}

absl::Status Inputs::TokenizeOnly(int64_t index, const InputEncoder& encoder,
                                  TokenizerScratch* scratch) {
  Encoding& out = encodings_[index];
  const int64_t most =
      std::min(encoder.max_request_tokens(), answer_limit_.max_rows());
  absl::Status status = encoder.Tokenize(inputs_[index], *ids_only_,
                                         most - only_ids_, scratch, &out);
  const auto ids = static_cast<int64_t>(out.token_ids.size());
  // The total count will reject the request.
  if (!status.ok() || only_ids_.fetch_add(ids) + ids > most) out = Encoding();
  return status;
}

absl::Status Inputs::Encode(int64_t index, const InputEncoder& encoder,
                            TokenizerScratch* scratch, Encoding* buffer) {
  TokenizedInput& tokenized = tokenized_[index];
  if (auto* refused = std::get_if<RefusedInput>(&inputs_[index])) {
    tokenized.status = std::move(refused->error);
    tokenized.token_count = refused->token_count;
    return absl::OkStatus();
  }
  absl::Status status =
      encoder.Encode(&inputs_[index], rules_, scratch, buffer, &tokenized);
  if (tokenized.windows > 0 &&
      window_ids_.fetch_add(tokenized.token_count) + tokenized.token_count >
          encoder.max_request_tokens()) {
    tokenized.sequence = TokenSequence();  // Settle will reject the request
  }
  return status;
}

bool Inputs::CountFault(int64_t index) {
  MutexLock lock(&mutex_);
  ++total_faults_;
  return faults_.size() < kMaxViolations || index < faults_.back().index;
}

void Inputs::AddFault(InputFault fault) {
  MutexLock lock(&mutex_);
  const auto after = std::find_if(
      faults_.begin(), faults_.end(),
      [&](const InputFault& other) { return other.index > fault.index; });
  faults_.insert(after, std::move(fault));
  if (faults_.size() > kMaxViolations) faults_.pop_back();
}

bool Inputs::Account(int64_t count, absl::Duration time) {
  nanoseconds_.fetch_add(absl::ToInt64Nanoseconds(time),
                         std::memory_order_relaxed);
  return left_.fetch_sub(count, std::memory_order_acq_rel) == count;
}

absl::Status Inputs::Check() const {
  {
    MutexLock lock(&mutex_);
    if (total_faults_ > 0) return CombineInputFaults(faults_, total_faults_);
  }
  const int64_t rows = AnswerRows();
  if (rows <= answer_limit_.max_rows()) return absl::OkStatus();
  return AnswerTooLargeError(rows * answer_limit_.row_bytes,
                             answer_limit_.max_bytes, "inputs");
}

int64_t Inputs::tokens() const {
  if (ids_only_.has_value()) return only_ids_;
  int64_t tokens = 0;
  for (const TokenizedInput& input : tokenized_) {
    if (input.status.ok()) tokens += input.tokens;
  }
  return tokens;
}

int64_t Inputs::AnswerRows() const {
  if (ids_only_.has_value()) return only_ids_;
  int64_t rows = 0;
  for (const TokenizedInput& input : tokenized_) {
    if (!input.status.ok()) continue;
    if (!states_) {
      ++rows;
    } else if (!rules_.without_special_tokens) {
      rows += input.sequence.size();
    }
    for (const TextRange& range : input.span) rows += range.end - range.begin;
  }
  return rows;
}

absl::Duration Inputs::tokenize_time() const {
  return absl::Nanoseconds(nanoseconds_.load(std::memory_order_relaxed));
}

void Inputs::Clear() {
  std::vector<Input>().swap(inputs_);
  std::vector<TokenizedInput>().swap(tokenized_);
  std::vector<Encoding>().swap(encodings_);
}

}  // namespace encoderd
