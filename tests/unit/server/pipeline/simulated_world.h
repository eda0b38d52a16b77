// The world of one schedule (simulation.h), and the Sessions in it.
#ifndef ENCODERD_TESTS_UNIT_SERVER_PIPELINE_SIMULATED_WORLD_H_
#define ENCODERD_TESTS_UNIT_SERVER_PIPELINE_SIMULATED_WORLD_H_

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engine/session.h"
#include "server/pipeline/admission.h"
#include "server/pipeline/batch_runner.h"
#include "server/pipeline/call.h"
#include "server/pipeline/work_queue.h"
#include "tests/support/fake_tokenizer.h"
#include "tests/unit/server/pipeline/simulation.h"

namespace encoderd {
inline absl::Time virtual_now;  // one thread runs one schedule at a time
inline absl::Time VirtualNow() { return virtual_now; }

// What happened to one request, seen from outside.
struct Story {
  std::shared_ptr<Call> call;
  std::vector<int32_t> lengths;
  bool refused = false;
  bool cancelled = false;
  bool poisoned = false;
  absl::Time deadline;
  int answers = 0;
  absl::Status status;
  PipelineResult result;
  int32_t taken = 0;  // inputs that were taken, in order
  int slices = 0;
  std::set<int32_t> computed;
  int64_t taken_before = 0;  // tokens of all batches when it was queued
  int64_t most_ahead = 0;    // tokens that may be taken before its first
};

class Simulation;

class SimulatedSession final : public Session {
 public:
  SimulatedSession(Simulation* simulation, int64_t max_tokens)
      : world_(*simulation), max_tokens_(max_tokens) {}
  int64_t max_batch_tokens() const override { return max_tokens_; }
  int64_t scratch_bytes() const override { return 0; }
  void SetPauses(Pauses* pauses) override { pauses_ = pauses; }
  absl::Status Run(const PackedBatch& batch,
                   absl::Span<const SequenceOutput> outputs,
                   ForwardResult* result) override;

 private:
  Simulation& world_;
  const int64_t max_tokens_;
  Pauses* pauses_ = nullptr;
};

// Small requests in pauses that come at random.
class SimulatedPauses final : public Pauses {
 public:
  SimulatedPauses(Simulation* simulation, int64_t max_tokens);
  bool Wanted() override;
  void Run() noexcept override;

 private:
  Simulation& world_;
  SimulatedSession session_;
  BatchRunner runner_;
  Work work_;
};

class Simulation final : public CallHost, public PipelineObserver {
 public:
  Simulation(uint64_t seed, SimulationCounts* counts);
  std::string Run();

  void CallFinished() override { ++finished_; }
  void StageDuration(Stage stage, absl::Duration duration) override {
    Check(duration >= absl::ZeroDuration(), "a stage took negative time");
  }
  void InputTokens(int64_t tokens) override {}
  void BatchComputed(int64_t tokens, int64_t sequences,
                     int64_t duplicate_tokens) override {}
  void QueueChanged(int64_t sequences, int64_t tokens) override {
    queue_sequences_ = sequences;
    queue_tokens_ = tokens;
  }
  void Cancelled(Stage stage, int64_t sequences) override {}
  void DeviceFault(bool lost, const absl::Status& status) override {}

 private:
  friend class SimulatedPauses;
  friend class SimulatedSession;
  struct Lane {  // a Session and its thread
    std::unique_ptr<SimulatedSession> session;
    std::unique_ptr<SimulatedPauses> pauses;  // of half of the worlds
    std::unique_ptr<BatchRunner> runner;
    Work work;
    bool busy = false;
  };

  int Pick(int bound) {
    return static_cast<int>(random_() % static_cast<uint64_t>(bound));
  }
  void Check(bool holds, const std::string& what) {
    if (!holds && problem_.empty()) problem_ = what;
  }
  void Submit();
  void CancelOne();
  void StartBatch(Lane* lane);
  void CheckTaken(const Work& work, int64_t max_tokens);
  void EndBatch(Lane* lane);
  void Step();
  int64_t MostAhead(uint64_t caller) const;
  void CheckAnswer(int number, const Story& story);

  std::mt19937_64 random_;
  SimulationCounts& counts_;
  IdLimits limits_;
  int64_t max_tokens_;
  FairShares shares_;
  std::unique_ptr<Admission> admission_;
  FakeTokenizer tokenizer_;  // never asked: all inputs are ids
  std::unique_ptr<InputEncoder> encoder_;
  std::shared_ptr<WorkQueue> queue_;
  std::vector<Lane> lanes_;
  std::vector<std::unique_ptr<Story>> stories_;  // by request number
  int64_t finished_ = 0;
  int64_t queue_sequences_ = 0;
  int64_t queue_tokens_ = 0;
  int64_t taken_tokens_ = 0;
  int fail_next_ = 0;
  bool any_failed_ = false;
  bool lost_ = false;
  std::string problem_;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_UNIT_SERVER_PIPELINE_SIMULATED_WORLD_H_
