#include "tests/unit/server/pipeline/simulation.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "server/pipeline/admission.h"
#include "server/pipeline/batch_runner.h"
#include "server/pipeline/call.h"
#include "server/pipeline/tokenizer_pool.h"
#include "server/pipeline/work_queue.h"
#include "tests/support/fake_tokenizer.h"

namespace encoderd {
namespace {

constexpr int kCallers = 4;

absl::Time virtual_now;  // one thread runs one schedule at a time
absl::Time VirtualNow() { return virtual_now; }

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
  explicit SimulatedSession(Simulation* simulation) : world_(*simulation) {}
  int64_t max_batch_tokens() const override;
  absl::Status Run(const PackedBatch& batch,
                   absl::Span<const SequenceOutput> outputs,
                   ForwardResult* result) override;

 private:
  Simulation& world_;
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
  void BatchComputed(int64_t tokens, int64_t sequences) override {}
  void QueueChanged(int64_t sequences, int64_t tokens) override {
    queue_sequences_ = sequences;
    queue_tokens_ = tokens;
  }
  void Cancelled(Stage stage, int64_t sequences) override {}
  void DeviceFault(bool lost, const absl::Status& status) override {}

 private:
  friend class SimulatedSession;
  struct Lane {  // a Session and its thread
    std::unique_ptr<SimulatedSession> session;
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

Simulation::Simulation(uint64_t seed, SimulationCounts* counts)
    : random_(seed * 0x9E3779B97F4A7C15u + 1), counts_(*counts) {
  virtual_now = absl::FromUnixSeconds(1000);
  limits_.token_rows = std::numeric_limits<int32_t>::max();
  limits_.max_len = 4 + Pick(13);
  limits_.position_rows = limits_.max_len;
  max_tokens_ = limits_.max_len + Pick(50);
  shares_ = {1 + Pick(static_cast<int>(max_tokens_)),
             1 + Pick(2 * static_cast<int>(max_tokens_))};
  admission_ = std::make_unique<Admission>(200 + Pick(2000), 1 << 20);
  encoder_ = std::make_unique<InputEncoder>(&tokenizer_, limits_);
  queue_ = std::make_shared<WorkQueue>(shares_, this);
  lanes_.resize(1 + Pick(3));
  for (Lane& lane : lanes_) {
    lane.session = std::make_unique<SimulatedSession>(this);
    lane.runner = std::make_unique<BatchRunner>(
        lane.session.get(), queue_.get(), limits_, this, VirtualNow);
  }
}

int64_t SimulatedSession::max_batch_tokens() const {
  return world_.max_tokens_;
}

// Token 0 of a sequence is its request's number, token 1 its index.
absl::Status SimulatedSession::Run(const PackedBatch& batch,
                                   absl::Span<const SequenceOutput> outputs,
                                   ForwardResult* result) {
  ++world_.counts_.batches;
  world_.Check(batch.num_tokens() <= world_.max_tokens_,
               "a batch exceeds its tokens");
  if (world_.lost_) return absl::DataLossError("lost");
  bool poisoned = false;
  for (int64_t b = 0; b < batch.num_sequences(); ++b) {
    const int32_t number = batch.token_ids[batch.cu_seqlens[b]];
    const int32_t index = batch.token_ids[batch.cu_seqlens[b] + 1];
    const Story& story = *world_.stories_[number];
    world_.Check(!story.cancelled || story.answers > 0 || !story.call->alive(),
                 "a cancelled call is alive");
    world_.Check(story.call->alive(), "a row of a marked call is computed");
    poisoned |= story.poisoned && index == 0;
  }
  if (poisoned || world_.fail_next_ > 0) {
    if (world_.fail_next_ > 0) {
      --world_.fail_next_;
      world_.any_failed_ = true;
    }
    ++world_.counts_.retried_batches;
    return absl::InternalError("fault");
  }
  result->values.clear();
  result->offsets.assign(1, 0);
  for (int64_t b = 0; b < batch.num_sequences(); ++b) {
    const int32_t number = batch.token_ids[batch.cu_seqlens[b]];
    const int32_t index = batch.token_ids[batch.cu_seqlens[b] + 1];
    world_.Check(world_.stories_[number]->computed.insert(index).second,
                 absl::StrCat("input ", index, " of request ", number,
                              " is computed twice"));
    result->values.push_back(static_cast<float>(number));
    result->values.push_back(static_cast<float>(index));
    result->offsets.push_back(static_cast<int64_t>(result->values.size()));
  }
  return absl::OkStatus();
}

// Before a new request's first input: one turn of each request of its own
// caller, and as many turns of every other caller as its own takes for that.
int64_t Simulation::MostAhead(uint64_t caller) const {
  const int64_t longest = limits_.max_len;
  int64_t own = 0;
  for (const auto& story : stories_) {
    if (story->refused || story->call->caller.id != caller) continue;
    if (story->taken == static_cast<int32_t>(story->lengths.size())) continue;
    own += shares_.request_share + longest;
  }
  const int64_t turns = own / shares_.caller_share + 2;
  return own + turns * (kCallers - 1) * (shares_.caller_share + longest);
}

void Simulation::Submit() {
  const auto number = static_cast<int32_t>(stories_.size());
  stories_.push_back(std::make_unique<Story>());
  Story* story = stories_.back().get();
  PipelineRequest request;
  request.caller.id = Pick(kCallers);
  story->deadline = Pick(4) == 0 ? virtual_now + absl::Milliseconds(Pick(200))
                                 : absl::InfiniteFuture();
  story->poisoned = Pick(12) == 0;
  request.deadline = story->deadline;
  const int inputs = 1 + Pick(Pick(6) == 0 ? 60 : 8);
  int64_t tokens = 0;
  for (int i = 0; i < inputs; ++i) {
    TokenSequence sequence;
    sequence.token_ids.assign(2 + Pick(limits_.max_len - 1), 7);
    sequence.token_ids[0] = number;
    sequence.token_ids[1] = i;
    tokens += sequence.size();
    story->lengths.push_back(static_cast<int32_t>(sequence.size()));
    request.inputs.push_back(std::move(sequence));
  }
  story->call = std::make_shared<Call>(
      number, std::move(request),
      [story](absl::StatusOr<PipelineResult> result) {
        ++story->answers;
        story->status = result.status();
        if (result.ok()) story->result = *std::move(result);
      },
      this, queue_, virtual_now);
  absl::StatusOr<Permit> permit = admission_->Admit(tokens, false, 1);
  if (!permit.ok()) {
    story->refused = true;
    story->call->Fail(Call::Fate::kFailed, permit.status());
    story->call->Finish(virtual_now);
    return;
  }
  story->call->permit = *std::move(permit);
  // A cancel may come between tokenising and queueing.
  Check(Tokenize({0, inputs}, *encoder_, nullptr, nullptr, absl::InfinitePast(),
                 story->call.get()),
        "the only slice is not the last");
  Check(story->call->permit.Settle(tokens).ok(), "settling grew");
  if (Pick(20) == 0) {
    story->cancelled = true;
    story->call->Cancel();
  }
  story->taken_before = taken_tokens_;
  story->most_ahead = MostAhead(story->call->caller.id);
  Check(story->call->StartComputing(*encoder_) == story->lengths,
        "a sequence is not as long as its input");
  queue_->Add(story->call, story->lengths, virtual_now);
}

void Simulation::CancelOne() {
  if (stories_.empty()) return;
  Story* story = stories_[Pick(static_cast<int>(stories_.size()))].get();
  if (story->refused) return;
  story->cancelled = true;
  story->call->Cancel();
}

void Simulation::StartBatch(Lane* lane) {
  BatchLimits limits;
  limits.max_tokens = max_tokens_;
  limits.min_tokens = Pick(static_cast<int>(max_tokens_));
  limits.sessions = static_cast<int>(lanes_.size());
  limits.idle_sessions = static_cast<int>(
      std::count_if(lanes_.begin(), lanes_.end(),
                    [](const Lane& other) { return !other.busy; }));
  const int64_t waiting = queue_sequences_;
  queue_->TryTake(limits, virtual_now, &lane->work);
  Check(waiting == 0 || !lane->work.taken.empty() || queue_sequences_ == 0,
        "work waits beside a free session");
  int64_t tokens = 0;
  for (const auto& [call, slice] : lane->work.taken) {
    Story* story = stories_[call->id].get();
    if (story->taken == 0) {
      Check(taken_tokens_ + tokens - story->taken_before <= story->most_ahead,
            absl::StrCat("request ", call->id, " starved"));
    }
    Check(slice.first == story->taken, "inputs are taken out of order or lost");
    Check(!story->cancelled, "a cancelled request is taken");
    Check(virtual_now < story->deadline, "an expired request is taken");
    story->taken += slice.count;
    ++story->slices;
    const auto first = story->lengths.begin() + slice.first;
    tokens = std::accumulate(first, first + slice.count, tokens);
  }
  Check(tokens <= max_tokens_, "a batch is planned beyond its tokens");
  taken_tokens_ += tokens;
  lane->busy = true;
}

void Simulation::EndBatch(Lane* lane) {
  lane->runner->Run(&lane->work);
  lane->work.taken.clear();
  lane->busy = false;
}

void Simulation::Step() {
  virtual_now += absl::Milliseconds(Pick(20));
  const int choice = Pick(100);
  Lane* lane = &lanes_[Pick(static_cast<int>(lanes_.size()))];
  if (choice < 30) {
    Submit();
  } else if (choice < 40) {
    CancelOne();
  } else if (choice < 43) {
    fail_next_ = 1 + Pick(3);
  } else if (choice == 43 && Pick(20) == 0) {
    lost_ = true;
  } else if (lane->busy) {
    EndBatch(lane);
  } else {
    StartBatch(lane);
  }
}

void Simulation::CheckAnswer(int number, const Story& story) {
  const std::string name = absl::StrCat("request ", number);
  Check(story.answers == 1,
        absl::StrCat(name, " was answered ", story.answers, " times"));
  const auto inputs = static_cast<int32_t>(story.lengths.size());
  counts_.sliced_requests += story.slices > 1 ? 1 : 0;
  switch (story.status.code()) {
    case absl::StatusCode::kOk: {
      ++counts_.ok;
      bool right = static_cast<int32_t>(story.result.outputs.size()) == inputs;
      for (int32_t i = 0; right && i < inputs; ++i) {
        right = story.result.outputs[i].values ==
                std::vector<float>{static_cast<float>(number),
                                   static_cast<float>(i)};
      }
      Check(right, absl::StrCat(name, " has wrong or misplaced values"));
      break;
    }
    case absl::StatusCode::kCancelled:
      ++counts_.cancelled;
      Check(story.cancelled, absl::StrCat(name, " was never cancelled"));
      break;
    case absl::StatusCode::kDeadlineExceeded:
      ++counts_.expired;
      Check(story.deadline <= virtual_now, absl::StrCat(name, " had time"));
      break;
    case absl::StatusCode::kInternal:
      ++counts_.faults;
      Check(story.poisoned || any_failed_ || lost_,
            absl::StrCat(name, " failed without a fault"));
      break;
    case absl::StatusCode::kUnavailable:
      ++counts_.unavailable;
      Check(lost_, absl::StrCat(name, " lost a device that is there"));
      break;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kInvalidArgument:
      ++counts_.queue_full;
      Check(story.refused, absl::StrCat(name, " was admitted and refused"));
      break;
    default:
      Check(false, absl::StrCat(name, ": ", story.status.ToString()));
  }
  Check(GetErrorDetail(story.status).has_value() || story.status.ok(),
        absl::StrCat(name, " has an error without a reason"));
}

std::string Simulation::Run() {
  const int steps = 10 + Pick(120);
  for (int i = 0; i < steps && problem_.empty(); ++i) Step();
  fail_next_ = 0;
  // Everything ends: as many rounds as there are inputs are more than enough.
  for (int round = 0; round < 100000 && problem_.empty(); ++round) {
    bool busy = queue_sequences_ > 0;
    for (Lane& lane : lanes_) {
      if (lane.busy) EndBatch(&lane);
      StartBatch(&lane);
      busy |= !lane.work.taken.empty() || !lane.work.dropped.empty();
    }
    if (!busy) break;
  }
  if (!problem_.empty()) return problem_;
  for (size_t i = 0; i < stories_.size(); ++i) {
    CheckAnswer(static_cast<int>(i), *stories_[i]);
  }
  Check(finished_ == static_cast<int64_t>(stories_.size()),
        "started and finished differ");
  Check(admission_->tokens() == 0 && admission_->bytes() == 0,
        "a permit leaked");
  Check(queue_sequences_ == 0 && queue_tokens_ == 0, "the gauge is not 0");
  return problem_;
}

}  // namespace

std::string RunSchedule(uint64_t seed, SimulationCounts* counts) {
  return Simulation(seed, counts).Run();
}

}  // namespace encoderd
