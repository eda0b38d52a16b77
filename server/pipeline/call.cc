#include "server/pipeline/call.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/time/clock.h"
#include "engine/base/error.h"
#include "server/pipeline/work_queue.h"

namespace encoderd {

Call::Call(uint64_t id, PipelineRequest request, Pipeline::Done done,
           CallHost* host, std::shared_ptr<WorkQueue> queue, absl::Time now)
    : id(id),
      caller(request.caller),
      deadline(request.deadline),
      rules{request.truncate, request.window_overlap,
            request.without_special_tokens, false},
      ids_only(false),
      submitted_at(now),
      num_inputs_(static_cast<int64_t>(request.inputs.size())),
      output_(request.output),
      errors_per_input_(request.errors_per_input),
      answer_limit_(request.answer),
      queue_(std::move(queue)),
      host_(host),
      inputs_(std::move(request.inputs)),
      encoded_(num_inputs_),
      done_(std::move(done)),
      left_to_encode_(num_inputs_),
      left_to_compute_(num_inputs_) {}

Call::Call(uint64_t id, TokenizePipelineRequest request,
           Pipeline::TokenizeDone done, CallHost* host,
           std::shared_ptr<WorkQueue> queue, absl::Time now)
    : id(id),
      caller(0),
      deadline(request.deadline),
      rules{TruncateMode::kNone, std::nullopt, false, true},
      ids_only(true),
      submitted_at(now),
      num_inputs_(static_cast<int64_t>(request.inputs.size())),
      encode_options_(request.options),
      answer_limit_(request.answer),
      queue_(std::move(queue)),
      host_(host),
      inputs_(std::move(request.inputs)),
      encodings_(num_inputs_),
      tokenize_done_(std::move(done)),
      left_to_encode_(num_inputs_),
      left_to_compute_(0) {}

void Call::Cancel() {
  if (Fail(Fate::kGone, CancelledError())) queue_->Discard(*this);
}

bool Call::Fail(Fate fate, const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (finished_ || !status_.ok()) return false;
  status_ = status;
  fate_.store(fate, std::memory_order_release);
  return true;
}

void Call::Finish(absl::Time now) {
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    finished_ = true;
    status = status_;
  }
  const int64_t tokens = permit_.tokens();
  permit_.Release();
  std::vector<PipelineInput>().swap(inputs_);
  if (ids_only) {
    Pipeline::TokenizeDone done = std::move(tokenize_done_);
    tokenize_done_ = nullptr;
    if (status.ok()) {
      done(std::move(encodings_));
    } else {
      done(std::move(status));
    }
  } else {
    Pipeline::Done done = std::move(done_);
    done_ = nullptr;
    absl::StatusOr<PipelineResult> result = PipelineResult();
    if (!status.ok()) result = std::move(status);
    try {
      if (result.ok()) result = TakeResult(tokens, now);
    } catch (...) {
      result = InternalFaultError(NewErrorId());
    }
    std::vector<EncodedInput>().swap(encoded_);
    std::vector<Unit>().swap(units_);
    done(std::move(result));
  }
  host_->CallFinished();
}

PipelineResult Call::TakeResult(int64_t tokens, absl::Time now) {
  PipelineResult result;
  result.outputs = JoinUnits(encoded_, output_.normalize, &units_);
  std::vector<EncodedInput>().swap(encoded_);
  std::vector<Unit>().swap(units_);
  result.tokens = tokens;
  result.tokenize_time =
      absl::Nanoseconds(tokenize_ns_.load(std::memory_order_relaxed));
  if (first_batch_at != absl::InfinitePast()) {
    result.queue_time =
        std::max(first_batch_at - submitted_at - result.tokenize_time,
                 absl::ZeroDuration());
    result.compute_time = now - first_batch_at;
  }
  return result;
}

bool Call::EncodeInputs(int64_t first, int64_t last,
                        const InputEncoder& encoder, TokenizerScratch* scratch,
                        Encoding* buffer, absl::Time now) {
  if (now >= deadline) Fail(Fate::kGone, ExpiredError());
  try {
    EncodePiece(first, last, encoder, scratch, buffer);
  } catch (...) {  // no memory: the thread and the other calls go on
    Fail(Fate::kFailed, InternalFaultError(NewErrorId()));
  }
  tokenize_ns_.fetch_add(absl::ToInt64Nanoseconds(absl::Now() - now),
                         std::memory_order_relaxed);
  return left_to_encode_.fetch_sub(last - first, std::memory_order_acq_rel) ==
         last - first;
}

void Call::EncodePiece(int64_t first, int64_t last, const InputEncoder& encoder,
                       TokenizerScratch* scratch, Encoding* buffer) {
  std::vector<InputFault> faults;
  int64_t total_faults = 0;
  for (int64_t i = first; i < last && alive(); ++i) {
    const absl::string_view content = ContentName(inputs_[i]);
    const absl::Status status = EncodeOne(i, encoder, scratch, buffer);
    inputs_[i] = TextInput();  // the text is not needed any more
    if (status.ok()) continue;
    if (errors_per_input_) {
      encoded_[i].status = MakeInputFault(i, content, status).status;
      continue;
    }
    if (++total_faults <= kMaxViolations) {
      faults.push_back(MakeInputFault(i, content, status));
    }
  }
  if (total_faults > 0) {
    MutexLock lock(&mutex_);
    total_faults_ += total_faults;
    for (InputFault& fault : faults) faults_.push_back(std::move(fault));
    // Only the first ones are ever shown.
    std::sort(faults_.begin(), faults_.end(),
              [](const InputFault& a, const InputFault& b) {
                return a.index < b.index;
              });
    if (faults_.size() > kMaxViolations) faults_.resize(kMaxViolations);
  }
}

absl::Status Call::TokenizeOne(int64_t index, const InputEncoder& encoder,
                               TokenizerScratch* scratch) {
  Encoding& out = encodings_[index];
  const int64_t most =
      std::min(encoder.max_request_tokens(), answer_limit_.max_rows());
  absl::Status status = encoder.Tokenize(inputs_[index], encode_options_,
                                         most - only_ids_, scratch, &out);
  const auto ids = static_cast<int64_t>(out.token_ids.size());
  // The request will be refused by the count of all.
  if (!status.ok() || only_ids_.fetch_add(ids) + ids > most) out = Encoding();
  return status;
}

absl::Status Call::EncodeOne(int64_t index, const InputEncoder& encoder,
                             TokenizerScratch* scratch, Encoding* buffer) {
  if (ids_only) return TokenizeOne(index, encoder, scratch);
  if (auto* refused = std::get_if<RefusedInput>(&inputs_[index])) {
    encoded_[index].status = std::move(refused->error);
    return absl::OkStatus();
  }
  EncodedInput& encoded = encoded_[index];
  absl::Status status =
      encoder.Encode(&inputs_[index], rules, scratch, buffer, &encoded);
  if (encoded.windows > 0 &&
      window_ids_.fetch_add(encoded.token_count) + encoded.token_count >
          encoder.max_request_tokens()) {
    encoded.sequence = TokenSequence();  // Settle will refuse the request
  }
  return status;
}

absl::Status Call::InputFaults() const {
  MutexLock lock(&mutex_);
  if (total_faults_ == 0) return absl::OkStatus();
  return CombineInputFaults(faults_, total_faults_);
}

int64_t Call::tokens() const {
  if (ids_only) return only_ids_;
  int64_t tokens = 0;
  for (const EncodedInput& input : encoded_) {
    if (input.status.ok()) tokens += input.tokens;
  }
  return tokens;
}

int64_t Call::AnswerRows() const {
  if (ids_only) return only_ids_;
  int64_t rows = 0;
  for (const EncodedInput& input : encoded_) {
    if (!input.status.ok()) continue;
    if (output_.kind != SequenceOutput::Kind::kStates) {
      ++rows;
    } else if (!rules.without_special_tokens) {
      rows += input.sequence.size();
    }
    for (const TextRange& range : input.span) rows += range.end - range.begin;
  }
  return rows;
}

absl::Status Call::AnswerFits() const {
  const int64_t rows = AnswerRows();
  if (rows <= answer_limit_.max_rows()) return absl::OkStatus();
  return AnswerTooLargeError(rows * answer_limit_.row_bytes,
                             answer_limit_.max_bytes, "inputs");
}

std::vector<int32_t> Call::StartComputing(const InputEncoder& encoder) {
  units_ =
      MakeUnits(encoder.RuleOf(rules.window_overlap.value_or(0)), &encoded_);
  std::vector<int32_t> lengths(units_.size());
  for (size_t i = 0; i < units_.size(); ++i) {
    lengths[i] = static_cast<int32_t>(units_[i].sequence.size());
  }
  left_to_compute_.store(static_cast<int64_t>(units_.size()),
                         std::memory_order_release);
  return lengths;
}

void Call::Deliver(int32_t unit, absl::Span<const float> values) {
  Unit& done = units_[unit];
  TakeValues(rules, output_, encoded_[done.input], values, &done);
}

bool Call::FailUnit(int32_t unit, const absl::Status& status) {
  if (!errors_per_input_) {
    Fail(Fate::kFailed, status);
    return false;
  }
  MutexLock lock(&mutex_);
  absl::Status& error = encoded_[units_[unit].input].status;
  if (error.ok()) error = status;
  return true;
}

void Call::Account(int64_t units, absl::Time now) {
  if (left_to_compute_.fetch_sub(units, std::memory_order_acq_rel) == units) {
    Finish(now);
  }
}

}  // namespace encoderd
