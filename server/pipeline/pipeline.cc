#include "server/pipeline/pipeline.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/start_thread.h"
#include "server/base/steady_time.h"
#include "server/pipeline/batch_runner.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/small_requests.h"

namespace encoderd {
namespace {

// On a CPU idle cores help with any pass. By the time of their parts, 8 cores
// compute 128 tokens together in no more time than each computes 16, which
// reads all weights 8 times (tests/bench/figures/cpu.md).
constexpr int64_t kMinIdleTokensOfACpu = 128;

int64_t BatchTokens(const Session& session, const IdLimits& limits,
                    const PipelineOptions& options) {
  int64_t tokens = session.max_batch_tokens();
  if (options.max_batch_tokens > 0) {
    tokens = std::min(tokens, options.max_batch_tokens);
  }
  return std::max<int64_t>(tokens, limits.max_len);
}

// A request's turn is a batch, so that small requests go whole; a caller's is a
// quarter, so that a newcomer is served by the next batch.
FairShares Shares(const std::vector<std::unique_ptr<Session>>& sessions,
                  const std::vector<std::unique_ptr<Session>>& pause_sessions,
                  const IdLimits& limits, const PipelineOptions& options) {
  const int64_t tokens = BatchTokens(*sessions.front(), limits, options);
  return {
      std::max<int64_t>(tokens / 4, 1), tokens,
      pause_sessions.empty() ? 0 : pause_sessions.front()->max_batch_tokens()};
}

}  // namespace

Pipeline::Pipeline(const Tokenizer* tokenizer, const IdLimits& limits,
                   std::vector<std::unique_ptr<Session>> sessions,
                   const PipelineOptions& options, PipelineObserver* observer,
                   std::vector<std::unique_ptr<Session>> pause_sessions)
    : encoder_(tokenizer, limits, options.max_queue_tokens),
      options_(options),
      observer_(*observer),
      sessions_(std::move(sessions)),
      pause_sessions_(std::move(pause_sessions)),
      admission_(encoder_.max_request_tokens(), options.max_queue_bytes),
      queue_(std::make_shared<WorkQueue>(
          Shares(sessions_, pause_sessions_, limits, options), observer,
          sessions_.size())) {
  try {
    StartThreads();
  } catch (...) {
    EndThreads();
    throw;
  }
}

Pipeline::~Pipeline() {
  StartDraining();
  WaitIdle(absl::InfiniteFuture());
  EndThreads();
}

void Pipeline::StartThreads() {
  pool_ = std::make_unique<TokenizerPool>(
      &encoder_, options_.tokenizer_threads, options_.at_once_bytes,
      [this](std::shared_ptr<Call> call) { Tokenized(std::move(call)); });
  side_lane_ = std::make_unique<SideLane>(this, &observer_);
  threads_.reserve(sessions_.size());
  for (size_t i = 0; i < sessions_.size(); ++i) {
    BatchLimits batch;
    batch.max_tokens = BatchTokens(*sessions_[i], encoder_.limits(), options_);
    batch.min_tokens = batch.max_tokens / 8;
    if (!pause_sessions_.empty()) {
      batch.min_idle_tokens = std::min(kMinIdleTokensOfACpu, batch.max_tokens);
    }
    batch.sessions = static_cast<int>(sessions_.size());
    threads_.push_back(StartThread(absl::StrCat("batch-", i),
                                   [this, i, batch] { BatchLoop(i, batch); }));
  }
}

void Pipeline::EndThreads() {
  pool_.reset();
  side_lane_.reset();
  queue_->Stop();
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<PipelineCall> Pipeline::Submit(PipelineRequest request,
                                               Done done) {
  const absl::Time now = SteadyNow();
  request.max_queue_time = options_.max_queue_time;
  auto call = std::make_shared<Call>(next_id_.fetch_add(1), std::move(request),
                                     std::move(done), this, queue_, now);
  absl::Status status;
  try {
    status = Accept(call.get());
    if (status.ok()) pool_->Add(call);
  } catch (...) {  // no memory; the call counts and must be answered
    status = InternalFaultError(NewErrorId());
  }
  if (!status.ok()) {
    call->Fail(Call::Fate::kFailed, status);
    call->Finish(call->submitted_at);
  }
  return call;
}

std::shared_ptr<PipelineCall> Pipeline::SubmitWork(
    uint64_t caller, absl::Time deadline,
    std::function<void(const absl::Status&)> work) {
  const absl::Status status = Enter();
  if (status.ok()) {
    try {
      return side_lane_->Add(caller, deadline, options_.max_queue_time,
                             std::move(work));
    } catch (...) {
      CallFinished();
      throw;
    }
  }
  FinishCall(&work, status, this);
  return nullptr;
}

absl::Status Pipeline::Enter() {
  {
    MutexLock lock(&mutex_);
    ++in_flight_;
    if (draining_) return DrainingError();
  }
  return queue_->lost() ? queue_->LostError() : absl::OkStatus();
}

absl::Status Pipeline::Accept(Call* call) {
  const absl::Status entered = Enter();
  if (!entered.ok()) return entered;
  const Inputs& inputs = call->inputs;
  if (inputs.size() == 0) return NoInputsError();
  if (call->submitted_at >= call->deadline) {
    observer_.Cancelled(Stage::kTokenize, inputs.size());
    return call->ExpiredNow();
  }
  bool exact = true;
  int64_t tokens = 0;
  int64_t bytes = 0;
  for (const Input& input : inputs.waiting()) {
    bytes += InputBytes(input);
    tokens += encoder_.EstimateTokens(input, inputs.rules(), &exact);
  }
  absl::StatusOr<Permit> permit =
      admission_.Admit(tokens, !exact, bytes, call->caller);
  if (!permit.ok()) return WithPause(permit.status());
  call->permit = std::move(*permit);
  return absl::OkStatus();
}

absl::Status Pipeline::WithPause(absl::Status status) {
  if (status.code() != absl::StatusCode::kResourceExhausted) return status;
  const auto sessions = static_cast<int64_t>(sessions_.size());
  return WithRetryPause(std::move(status), queue_->pace().PauseFor(
                                               admission_.tokens() / sessions));
}

absl::StatusOr<std::vector<int32_t>> Pipeline::Prepare(Call* call,
                                                       absl::Time now) {
  observer_.StageDuration(Stage::kTokenize, now - call->submitted_at);
  const Call::Fate fate = call->fate();
  if (fate == Call::Fate::kGone)
    observer_.Cancelled(Stage::kTokenize, call->inputs.size());
  // Where it threw, its inputs are not all there.
  if (fate != Call::Fate::kAlive) return std::vector<int32_t>();
  absl::Status status = call->inputs.Check();
  if (status.ok()) {
    status = WithPause(call->permit.Settle(call->inputs.tokens()));
  }
  if (!status.ok()) return status;
  if (call->inputs.ids_only()) return std::vector<int32_t>();
  std::vector<int32_t> lengths = call->StartComputing(encoder_);
  for (const int32_t length : lengths) observer_.InputTokens(length);
  return lengths;  // empty: every input has its own error
}

void Pipeline::Tokenized(std::shared_ptr<Call> call) {
  const absl::Time now = SteadyNow();
  absl::StatusOr<std::vector<int32_t>> lengths;
  try {
    lengths = Prepare(call.get(), now);
  } catch (...) {
    lengths = InternalFaultError(NewErrorId());
  }
  if (!lengths.ok()) call->Fail(Call::Fate::kFailed, lengths.status());
  if (!lengths.ok() || lengths->empty()) {
    call->Finish(now);
    return;
  }
  queue_->Add(std::move(call), *std::move(lengths), now);
}

void Pipeline::BatchLoop(int index, BatchLimits limits) {
  Session& session = *sessions_[index];
  std::optional<SmallRequests> small;
  if (!pause_sessions_.empty()) {
    small.emplace(pause_sessions_[index].get(), queue_.get(), encoder_.limits(),
                  &observer_, SteadyNow);
  }
  BatchRunner runner(&session, queue_.get(), encoder_.limits(), &observer_,
                     SteadyNow, small ? &*small : nullptr);
  Work work;
  while (queue_->Take(limits, SteadyNow, &work)) runner.Run(&work);
  session.SetPauses(nullptr);
}

void Pipeline::CallFinished() {
  MutexLock lock(&mutex_);
  if (--in_flight_ == 0) idle_.NotifyAll(&mutex_);
}

void Pipeline::StartDraining() {
  MutexLock lock(&mutex_);
  draining_ = true;
}

int64_t Pipeline::in_flight() const {
  MutexLock lock(&mutex_);
  return in_flight_;
}

PipelineFigures Pipeline::figures() const {
  PipelineFigures figures;
  figures.admitted_tokens = admission_.tokens();
  figures.admitted_tokens_limit = admission_.max_tokens();
  figures.admitted_bytes = admission_.bytes();
  figures.admitted_bytes_limit = admission_.max_bytes();
  figures.compute_threads = static_cast<int64_t>(sessions_.size());
  figures.compute_threads_busy = queue_->busy();
  figures.oldest_batch_age = queue_->OldestBatchAge(SteadyNow());
  figures.max_batch_tokens =
      BatchTokens(*sessions_.front(), encoder_.limits(), options_);
  return figures;
}

bool Pipeline::WaitIdle(absl::Time until) {
  MutexLock lock(&mutex_);
  while (in_flight_ > 0) {
    if (SteadyNow() >= until) return false;
    idle_.WaitUntil(&mutex_, until);
  }
  return true;
}

}  // namespace encoderd
