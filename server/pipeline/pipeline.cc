#include "server/pipeline/pipeline.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/pipeline/admission.h"
#include "server/pipeline/batch_runner.h"
#include "server/pipeline/call.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/input_encoder.h"
#include "server/pipeline/mutex.h"
#include "server/pipeline/side_lane.h"
#include "server/pipeline/thread_name.h"
#include "server/pipeline/tokenizer_pool.h"
#include "server/pipeline/work_queue.h"

namespace encoderd {
namespace {

using Stage = PipelineObserver::Stage;

constexpr int64_t kDefaultQueueBatches = 64;  // of every Session

int64_t BatchTokens(const Session& session, const IdLimits& limits,
                    const PipelineOptions& options) {
  int64_t tokens = session.max_batch_tokens();
  if (options.max_batch_tokens > 0) {
    tokens = std::min(tokens, options.max_batch_tokens);
  }
  return std::max<int64_t>(tokens, limits.max_len);
}

class PipelineImpl final : public Pipeline, public CallHost {
 public:
  PipelineImpl(const Tokenizer* tokenizer, const IdLimits& limits,
               std::vector<std::unique_ptr<Session>> sessions,
               const PipelineOptions& options, PipelineObserver* observer);
  ~PipelineImpl() override;

  std::shared_ptr<PipelineCall> Submit(PipelineRequest request,
                                       Done done) override;
  std::shared_ptr<PipelineCall> SubmitTokenize(TokenizePipelineRequest request,
                                               TokenizeDone done) override;
  std::shared_ptr<PipelineCall> SubmitWork(
      uint64_t caller, absl::Time deadline,
      std::function<void(const absl::Status&)> work) override;
  void StartDraining() override;
  int64_t in_flight() const override;
  bool WaitIdle(absl::Time until) override;

 private:
  std::shared_ptr<PipelineCall> Start(std::shared_ptr<Call> call);
  // Counts a call; then OK unless none is taken any more.
  absl::Status Enter();
  // Lets a call in or says why not; counts it in any case.
  absl::Status Accept(Call* call);
  void Tokenized(std::shared_ptr<Call> call);
  absl::Status CheckTokenized(Call* call);
  // The lengths of what is to be computed; none: the call is done.
  absl::StatusOr<std::vector<int32_t>> Prepare(Call* call, absl::Time now);
  void StartThreads();
  void EndThreads();
  void BatchLoop(int index, BatchLimits limits);
  void CallFinished() override;

  const InputEncoder encoder_;
  const PipelineOptions options_;
  PipelineObserver& observer_;
  const std::vector<std::unique_ptr<Session>> sessions_;
  Admission admission_;
  const std::shared_ptr<WorkQueue> queue_;  // calls may outlive the pipeline
  std::atomic<uint64_t> next_id_{1};

  mutable Mutex mutex_;
  CondVar idle_;
  int64_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;

  std::unique_ptr<TokenizerPool> pool_;
  std::unique_ptr<SideLane> aside_;
  std::vector<std::thread> threads_;  // batch-DEVICE-N
};

int64_t QueueTokens(const std::vector<std::unique_ptr<Session>>& sessions,
                    const IdLimits& limits, const PipelineOptions& options) {
  if (options.max_queue_tokens > 0) return options.max_queue_tokens;
  int64_t tokens = 0;
  for (const auto& session : sessions) {
    tokens += kDefaultQueueBatches * BatchTokens(*session, limits, options);
  }
  return tokens;
}

// A request's turn is a batch, so that small requests go whole; a caller's is a
// quarter, so that a newcomer is served by the next batch.
FairShares Shares(const std::vector<std::unique_ptr<Session>>& sessions,
                  const IdLimits& limits, const PipelineOptions& options) {
  const int64_t tokens = BatchTokens(*sessions.front(), limits, options);
  return {std::max<int64_t>(tokens / 4, 1), tokens};
}

PipelineImpl::PipelineImpl(const Tokenizer* tokenizer, const IdLimits& limits,
                           std::vector<std::unique_ptr<Session>> sessions,
                           const PipelineOptions& options,
                           PipelineObserver* observer)
    : encoder_(tokenizer, limits, QueueTokens(sessions, limits, options)),
      options_(options),
      observer_(*observer),
      sessions_(std::move(sessions)),
      admission_(encoder_.max_request_tokens(), options.max_queue_bytes),
      queue_(std::make_shared<WorkQueue>(Shares(sessions_, limits, options),
                                         observer)) {
  try {
    StartThreads();
  } catch (...) {
    EndThreads();
    throw;
  }
}

PipelineImpl::~PipelineImpl() {
  StartDraining();
  WaitIdle(absl::InfiniteFuture());
  EndThreads();
}

void PipelineImpl::StartThreads() {
  pool_ = std::make_unique<TokenizerPool>(
      &encoder_, options_.tokenizer_threads,
      [this](std::shared_ptr<Call> call) { Tokenized(std::move(call)); });
  aside_ = std::make_unique<SideLane>(this, &observer_);
  for (size_t i = 0; i < sessions_.size(); ++i) {
    BatchLimits batch;
    batch.max_tokens = BatchTokens(*sessions_[i], encoder_.limits(), options_);
    batch.min_tokens = batch.max_tokens / 8;
    batch.sessions = static_cast<int>(sessions_.size());
    threads_.emplace_back([this, i, batch] { BatchLoop(i, batch); });
  }
}

void PipelineImpl::EndThreads() {
  pool_.reset();
  aside_.reset();
  queue_->Stop();
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<PipelineCall> PipelineImpl::Submit(PipelineRequest request,
                                                   Done done) {
  return Start(std::make_shared<Call>(next_id_.fetch_add(1), std::move(request),
                                      std::move(done), this, queue_,
                                      absl::Now()));
}

std::shared_ptr<PipelineCall> PipelineImpl::SubmitTokenize(
    TokenizePipelineRequest request, TokenizeDone done) {
  return Start(std::make_shared<Call>(next_id_.fetch_add(1), std::move(request),
                                      std::move(done), this, queue_,
                                      absl::Now()));
}

std::shared_ptr<PipelineCall> PipelineImpl::SubmitWork(
    uint64_t caller, absl::Time deadline,
    std::function<void(const absl::Status&)> work) {
  const absl::Status status = Enter();
  if (status.ok()) return aside_->Add(caller, deadline, std::move(work));
  work(status);
  CallFinished();
  return nullptr;
}

std::shared_ptr<PipelineCall> PipelineImpl::Start(std::shared_ptr<Call> call) {
  const absl::Status status = Accept(call.get());
  if (status.ok()) {
    pool_->Add(call);
  } else {
    call->Fail(Call::Fate::kFailed, status);
    call->Finish(call->submitted_at);
  }
  return call;
}

absl::Status PipelineImpl::Enter() {
  {
    MutexLock lock(&mutex_);
    ++in_flight_;
    if (draining_) return DrainingError();
  }
  return queue_->lost() ? queue_->LostError() : absl::OkStatus();
}

absl::Status PipelineImpl::Accept(Call* call) {
  const absl::Status entered = Enter();
  if (!entered.ok()) return entered;
  if (call->num_inputs() == 0) return NoInputsError();
  if (call->submitted_at >= call->deadline) {
    observer_.Cancelled(Stage::kTokenize, call->num_inputs());
    return ExpiredError();
  }
  bool exact = true;
  int64_t tokens = 0;
  int64_t bytes = 0;
  for (const PipelineInput& input : call->inputs()) {
    bytes += InputBytes(input);
    tokens += encoder_.EstimateTokens(input, call->rules, &exact);
  }
  absl::StatusOr<Permit> permit = admission_.Admit(tokens, !exact, bytes);
  if (!permit.ok()) return permit.status();
  call->permit() = std::move(*permit);
  return absl::OkStatus();
}

absl::Status PipelineImpl::CheckTokenized(Call* call) {
  absl::Status status = call->InputFaults();
  if (!status.ok()) return status;
  status = call->AnswerFits();
  if (!status.ok()) return status;
  return call->permit().Settle(call->tokens());
}

absl::StatusOr<std::vector<int32_t>> PipelineImpl::Prepare(Call* call,
                                                           absl::Time now) {
  observer_.StageDuration(Stage::kTokenize, now - call->submitted_at);
  if (call->fate() == Call::Fate::kGone) {
    observer_.Cancelled(Stage::kTokenize, call->num_inputs());
    return std::vector<int32_t>();
  }
  const absl::Status status = CheckTokenized(call);
  if (!status.ok()) return status;
  if (call->ids_only) return std::vector<int32_t>();
  std::vector<int32_t> lengths = call->StartComputing(encoder_);
  for (const int32_t length : lengths) observer_.InputTokens(length);
  return lengths;  // none: every input has its own error
}

void PipelineImpl::Tokenized(std::shared_ptr<Call> call) {
  const absl::Time now = absl::Now();
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

void PipelineImpl::BatchLoop(int index, BatchLimits limits) {
  SetThreadName(absl::StrCat("batch-", options_.device, "-", index));
  BatchRunner runner(sessions_[index].get(), queue_.get(), encoder_.limits(),
                     &observer_, absl::Now);
  Work work;
  while (queue_->Take(limits, absl::Now, &work)) runner.Run(&work);
}

void PipelineImpl::CallFinished() {
  MutexLock lock(&mutex_);
  if (--in_flight_ == 0) idle_.NotifyAll();
}

void PipelineImpl::StartDraining() {
  MutexLock lock(&mutex_);
  draining_ = true;
}

int64_t PipelineImpl::in_flight() const {
  MutexLock lock(&mutex_);
  return in_flight_;
}

bool PipelineImpl::WaitIdle(absl::Time until) {
  MutexLock lock(&mutex_);
  while (in_flight_ > 0) {
    if (absl::Now() >= until) return false;
    idle_.WaitUntil(&mutex_, until);
  }
  return true;
}

}  // namespace

std::unique_ptr<Pipeline> Pipeline::Create(
    const Tokenizer* tokenizer, const IdLimits& limits,
    std::vector<std::unique_ptr<Session>> sessions,
    const PipelineOptions& options, PipelineObserver* observer) {
  return std::make_unique<PipelineImpl>(tokenizer, limits, std::move(sessions),
                                        options, observer);
}

}  // namespace encoderd
