#include "server/pipeline/call.h"

#include <algorithm>
#include <utility>

#include "server/pipeline/errors.h"
#include "server/pipeline/work_queue.h"

namespace encoderd {

Call::Call(uint64_t id, PipelineRequest request, Done done, CallHost* host,
           std::shared_ptr<WorkQueue> queue, absl::Time now)
    : id(id),
      caller(request.caller),
      deadline(request.deadline),
      max_queue_time(request.max_queue_time),
      submitted_at(now),
      inputs(&request),
      sequences(request),
      queue_(std::move(queue)),
      host_(host),
      done_(std::move(done)) {}

void Call::Cancel() {
  if (Fail(Fate::kGone, CancelledError())) queue_->Discard(*this);
}

absl::Status Call::ExpiredNow() const {
  const bool begun = first_batch_at != absl::InfinitePast();
  return begun || latest_start() == deadline ? ExpiredError()
                                             : ExpiredError(max_queue_time);
}

bool Call::Fail(Fate fate, const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (finished_ || !status_.ok()) return false;
  status_ = status;
  fate_.store(fate, std::memory_order_release);
  return true;
}

std::vector<int32_t> Call::StartComputing(const InputEncoder& encoder) {
  std::vector<int32_t> lengths =
      sequences.Start(inputs.WindowsOf(encoder), inputs.TakeTokenized());
  left_to_compute_.store(static_cast<int64_t>(lengths.size()),
                         std::memory_order_release);
  return lengths;
}

void Call::Account(int64_t count, absl::Time now) {
  if (left_to_compute_.fetch_sub(count, std::memory_order_acq_rel) == count) {
    Finish(now);
  }
}

void Call::Finish(absl::Time now) {
  absl::StatusOr<PipelineResult> result = PipelineResult();
  {
    MutexLock lock(&mutex_);
    finished_ = true;
    if (!status_.ok()) result = status_;
  }
  const int64_t tokens = permit.tokens();
  permit.Release();
  try {
    if (result.ok()) result = TakeResult(tokens, now);
  } catch (...) {
    result = InternalFaultError(NewErrorId());
  }
  inputs.Clear();
  sequences.Clear();
  FinishCall(&done_, std::move(result), host_);
}

PipelineResult Call::TakeResult(int64_t tokens, absl::Time now) {
  PipelineResult result;
  result.encodings = inputs.TakeEncodings();
  result.outputs = sequences.Join();
  sequences.Clear();
  result.tokens = tokens;
  result.tokenize_time = inputs.tokenize_time();
  if (first_batch_at != absl::InfinitePast()) {
    result.queue_time =
        std::max(first_batch_at - submitted_at - result.tokenize_time,
                 absl::ZeroDuration());
    result.compute_time = now - first_batch_at;
    result.stages = {queued_at, first_batch_at, now};
  }
  return result;
}

}  // namespace encoderd
