// The path of a request behind the server's API: tokenizer pool -> admission ->
// batcher -> Session. Independent of the protocol.
//
// Pipeline owns every thread that it starts (tokenize-N, batch-N, side). Submit
// never blocks: it may be called on an RPC thread. Memory is
// bounded by max_queue_tokens and max_queue_bytes, not by load or by the kind
// of request. Thread-safe.
#ifndef ENCODERD_SERVER_PIPELINE_PIPELINE_H_
#define ENCODERD_SERVER_PIPELINE_PIPELINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/batch.h"
#include "engine/session.h"
#include "engine/tokenizer/tokenizer.h"
#include "server/base/mutex.h"
#include "server/pipeline/admission.h"
#include "server/pipeline/batch_policy.h"
#include "server/pipeline/call.h"
#include "server/pipeline/input_encoder.h"
#include "server/pipeline/request.h"
#include "server/pipeline/side_lane.h"
#include "server/pipeline/tokenizer_pool.h"
#include "server/pipeline/work_queue.h"

namespace encoderd {

struct PipelineOptions {
  int64_t max_batch_tokens = 0;  // 0: the Sessions' own limit
  // Tokens waiting and computing; beyond it QUEUE_FULL. The default is for
  // tests: the server sets what ServerConfig says.
  int64_t max_queue_tokens = 1 << 20;
  int32_t tokenizer_threads = 1;
  // The largest call that Submit tokenizes itself, in InputBytes (its text and
  // sizeof(Input) for each input); 0: none.
  int64_t at_once_bytes = 1 << 10;
  int64_t max_queue_bytes =
      64 << 20;  // text waiting to be tokenized; beyond it QUEUE_FULL
  // A request gets EXPIRED_IN_QUEUE if it has waited this long for its first
  // batch, whatever its own deadline; checked when a thread takes work.
  absl::Duration max_queue_time = absl::InfiniteDuration();
};

class Pipeline final : public CallHost {
 public:
  using Done = Call::Done;

  // `tokenizer`, `observer` outlive the pipeline; one batch thread per Session.
  // pause_sessions: one for the pauses of each Session, whose max_batch_tokens
  // is the limit of a small request; or empty. Throws if memory or a thread is
  // unavailable, and cleans up.
  Pipeline(const Tokenizer* tokenizer, const IdLimits& limits,
           std::vector<std::unique_ptr<Session>> sessions,
           const PipelineOptions& options, PipelineObserver* observer,
           std::vector<std::unique_ptr<Session>> pause_sessions = {});
  // Refuses new work, waits for accepted work, joins the threads. Must not run
  // on a pipeline thread (within `done`).
  ~Pipeline() override;
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Calls `done` exactly once, from a pipeline thread or from within Submit
  // (rejections, and small requests that need no compute: ids only, faulty or
  // expired). Errors carry an
  // ErrorDetail (engine/base/error.h) with input_index if one input is at fault
  // (and all violations of the request, up to kMaxViolations): INPUT_TOO_LONG
  // (not with ids_only) and those of Tokenizer; NO_INPUTS; QUEUE_FULL and
  // REQUEST_TOO_LARGE; EXPIRED_IN_QUEUE; CANCELLED_IN_QUEUE; DRAINING;
  // DEVICE_FAULT; INTERNAL_FAULT. If Submit throws (no memory), the call does
  // not exist, and `done` is not called. What `done` throws is dropped.
  std::shared_ptr<PipelineCall> Submit(PipelineRequest request, Done done);

  // Runs `work` once on the side thread (side_lane.h), or from within
  // SubmitWork if it is rejected, with OK or with the status to answer instead.
  // For work that would block an RPC thread too long. One at a time, the others
  // wait in order. Null if the pipeline accepts nothing more. Errors:
  // QUEUE_FULL (calls), EXPIRED_IN_QUEUE, CANCELLED_IN_QUEUE, DRAINING. Throws
  // as Submit does.
  std::shared_ptr<PipelineCall> SubmitWork(
      uint64_t caller, absl::Time deadline,
      std::function<void(const absl::Status&)> work);

  // From now on Submit answers DRAINING (UNAVAILABLE); accepted work continues.
  void StartDraining();
  // Requests accepted and not yet answered.
  int64_t in_flight() const;
  // Now; tokens and bytes are each exact, but not of the same moment.
  PipelineFigures figures() const;
  // Waits until in_flight() is 0 or the time is up; true if it is 0.
  bool WaitIdle(absl::Time until);

 private:
  // Counts a call; OK unless no calls are accepted any more.
  absl::Status Enter();
  // Admits a call or returns the error; counts it in both cases.
  absl::Status Accept(Call* call);
  // Tells a caller that a full queue rejects when to retry.
  absl::Status WithPause(absl::Status status);
  // From the tokenizer pool on to the queue.
  void Tokenized(std::shared_ptr<Call> call);
  // The lengths of what is to be computed; empty: the call is done.
  absl::StatusOr<std::vector<int32_t>> Prepare(Call* call, absl::Time now);
  void StartThreads();
  void EndThreads();
  void BatchLoop(int index, BatchLimits limits);
  void CallFinished() override;

  const InputEncoder encoder_;
  const PipelineOptions options_;
  PipelineObserver& observer_;
  const std::vector<std::unique_ptr<Session>> sessions_;
  const std::vector<std::unique_ptr<Session>> pause_sessions_;
  Admission admission_;
  const std::shared_ptr<WorkQueue> queue_;  // calls may outlive the pipeline
  std::atomic<uint64_t> next_id_{1};

  mutable Mutex mutex_;
  CondVar idle_;
  int64_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;

  std::unique_ptr<TokenizerPool> pool_;
  std::unique_ptr<SideLane> side_lane_;
  std::vector<std::thread> threads_;  // batch-N
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_PIPELINE_H_
