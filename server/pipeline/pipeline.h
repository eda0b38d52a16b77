// The way of a request behind the server's API: tokenizer pool -> admission ->
// batcher -> Session. Knows no protocol.
//
// Pipeline owns every thread that it starts (tokenize-N, batch-DEVICE-N,
// aside). Submit never blocks: it may be called on an RPC thread. Memory is
// bounded by max_queue_tokens and max_queue_bytes, not by load, whatever is
// asked for. Thread-safe.
#ifndef ENCODERD_SERVER_PIPELINE_PIPELINE_H_
#define ENCODERD_SERVER_PIPELINE_PIPELINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/batch.h"
#include "engine/session.h"
#include "engine/tokenizer/tokenizer.h"
#include "server/pipeline/admission.h"
#include "server/pipeline/batch_policy.h"
#include "server/pipeline/call.h"
#include "server/pipeline/input_encoder.h"
#include "server/pipeline/mutex.h"
#include "server/pipeline/request.h"
#include "server/pipeline/side_lane.h"
#include "server/pipeline/tokenizer_pool.h"
#include "server/pipeline/work_queue.h"

namespace encoderd {

struct PipelineOptions {
  int64_t max_batch_tokens = 0;  // 0: the Sessions' own limit
  int64_t max_queue_tokens =
      0;  // tokens waiting and computing; beyond it QUEUE_FULL
  int32_t tokenizer_threads = 1;
  int64_t max_queue_bytes =
      64 << 20;  // text waiting to be tokenized; beyond it QUEUE_FULL
  // A request is answered with EXPIRED_IN_QUEUE where inputs of it have waited
  // so long, whatever its own deadline; seen when a thread takes work.
  absl::Duration max_queue_time = absl::InfiniteDuration();
  std::string device = "cpu";  // names the threads: batch-cpu-0, ...
};

class Pipeline final : public CallHost {
 public:
  using Done = Call::Done;

  // `tokenizer`, `observer` outlive the pipeline; one batch thread a Session.
  // pause_sessions: one for the pauses of each Session, whose max_batch_tokens
  // is the most of a small request; or none at all. Throws where memory or a
  // thread cannot be had, and leaves nothing behind.
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
  // (refusals). Errors carry an ErrorDetail (engine/base/error.h) with
  // input_index where one input is to blame (and all violations of the request,
  // up to kMaxViolations): INPUT_TOO_LONG (not with ids_only) and those of
  // Tokenizer; NO_INPUTS; QUEUE_FULL and REQUEST_TOO_LARGE; EXPIRED_IN_QUEUE;
  // CANCELLED_IN_QUEUE; DRAINING; DEVICE_FAULT; INTERNAL_FAULT. Where it throws
  // (no memory) the call never was, and `done` is not called.
  std::shared_ptr<PipelineCall> Submit(PipelineRequest request, Done done);

  // Runs `work` once on a thread of its own kind (side_lane.h), or from within
  // SubmitWork when it is refused, with OK or with the status that it must
  // answer instead of working. For work that takes longer than an RPC thread
  // may. One at a time, the others wait in order. Null where it was refused by
  // a pipeline that takes nothing more. Errors: QUEUE_FULL (calls),
  // EXPIRED_IN_QUEUE, CANCELLED_IN_QUEUE, DRAINING. Throws as Submit does.
  std::shared_ptr<PipelineCall> SubmitWork(
      uint64_t caller, absl::Time deadline,
      std::function<void(const absl::Status&)> work);

  // From now on Submit answers DRAINING (UNAVAILABLE); accepted work goes on.
  void StartDraining();
  // Requests accepted and not yet answered.
  int64_t in_flight() const;
  // Now; tokens and bytes each right, not of one moment.
  PipelineFigures figures() const;
  // Waits until in_flight() is 0 or the time is up; true if it is 0.
  bool WaitIdle(absl::Time until);

 private:
  // Counts a call; then OK unless none is taken any more.
  absl::Status Enter();
  // Lets a call in or says why not; counts it in any case.
  absl::Status Accept(Call* call);
  // From the tokenizer pool on to the queue.
  void Tokenized(std::shared_ptr<Call> call);
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
  const std::vector<std::unique_ptr<Session>> pause_sessions_;
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

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_PIPELINE_H_
