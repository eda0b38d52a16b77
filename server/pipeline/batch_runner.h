// Runs one Session: packs what it takes from the queue, runs it, hands the
// results to their calls, and isolates failures.
//
// A failed batch is rerun in halves, down to single sequences: only one that
// fails alone fails its request (INTERNAL, DEVICE_FAULT), and since the bits of
// a sequence never depend on others, the neighbors get theirs. This also
// recovers from a transient fault. A lost device (DATA_LOSS) is not retried:
// the batch's requests fail, and the queue answers everything else UNAVAILABLE.
// A result with NaN or infinity fails its request alone.
//
// Equal sequences of a batch are one row (duplicates.h), and each gets its
// result, or its error.
//
// Not thread-safe: one thread each; holds no lock while the Session runs.
#ifndef ENCODERD_SERVER_PIPELINE_BATCH_RUNNER_H_
#define ENCODERD_SERVER_PIPELINE_BATCH_RUNNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/base/batch.h"
#include "engine/session.h"
#include "server/pipeline/duplicates.h"
#include "server/pipeline/request.h"
#include "server/pipeline/work_queue.h"

namespace encoderd {

// The pauses of a runner's passes.
class PassPauses : public Pauses {
 public:
  virtual void BeginPass(absl::Time now) = 0;
  virtual absl::Duration spent() const = 0;  // in pauses of this pass
};

class BatchRunner {
 public:
  // All outlive the runner. pauses: for batches with more than small requests;
  // null: none.
  BatchRunner(Session* session, WorkQueue* queue, const IdLimits& limits,
              PipelineObserver* observer, WorkQueue::Clock clock,
              PassPauses* pauses = nullptr)
      : session_(*session),
        queue_(*queue),
        limits_(limits),
        observer_(*observer),
        clock_(clock),
        pauses_(pauses) {}

  // Accounts for dropped sequences, computes and delivers every slice, and
  // releases the calls.
  void Run(Work* work);

 private:
  struct Member {  // one sequence of the work
    Call* call = nullptr;
    int32_t sequence = 0;
    int32_t row = 0;  // of the packed batch
  };

  // `all` -> members_. False: out of memory.
  bool List(const std::vector<Work::Taken>& all);
  void Drop(absl::Span<const Member> members, Stage stage);
  // For a batch of at most these; false: out of memory.
  bool MakeRoom(absl::Span<const Member> members);
  // Packs those whose calls are alive, equal ones once; the others are dropped.
  // One that is empty or longer than max_len is INTERNAL_FAULT and never
  // reaches the device. All fail if there is no memory for the batch.
  void Pack(absl::Span<const Member> members);
  // Runs the packed batch, and observes the time without pauses.
  absl::Status Forward();
  // Runs `members`; error_id: of the first failure of the batch, "" before it.
  void Compute(absl::Span<const Member> members, std::string error_id);
  void FailAll(absl::Span<const Member> members, bool lost,
               absl::string_view error_id);
  void DeliverPacked();
  void Fail(const Member& member, const absl::Status& status);

  Session& session_;
  WorkQueue& queue_;
  const IdLimits limits_;
  PipelineObserver& observer_;
  const WorkQueue::Clock clock_;
  PassPauses* const pauses_;

  // Reused from batch to batch.
  std::vector<Member> members_;   // of the work
  std::vector<Member> packed_;    // with a row in the batch; at least B
  Duplicates duplicates_;         // of the batch
  int64_t duplicate_tokens_ = 0;  // of packed_, less those of the batch
  PackedBatch batch_;
  std::vector<SequenceOutput> outputs_;  // [B]
  ForwardResult result_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_BATCH_RUNNER_H_
