#include "tests/unit/server/pipeline/simulation.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "server/pipeline/tokenizer_pool.h"
#include "tests/unit/server/pipeline/simulated_world.h"

namespace encoderd {
namespace {

constexpr int kCallers = 4;

}  // namespace

Simulation::Simulation(uint64_t seed, SimulationCounts* counts)
    : random_(seed * 0x9E3779B97F4A7C15u + 1), counts_(*counts) {
  virtual_now = absl::FromUnixSeconds(1000);
  limits_.token_rows = std::numeric_limits<int32_t>::max();
  limits_.max_len = 4 + Pick(13);
  limits_.position_rows = limits_.max_len;
  max_tokens_ = limits_.max_len + Pick(50);
  shares_ = {1 + Pick(static_cast<int>(max_tokens_)),
             1 + Pick(2 * static_cast<int>(max_tokens_)),
             Pick(2) * (1 + Pick(static_cast<int>(max_tokens_)))};
  admission_ = std::make_unique<Admission>(200 + Pick(2000), 1 << 20);
  encoder_ = std::make_unique<InputEncoder>(&tokenizer_, limits_);
  queue_ = std::make_shared<WorkQueue>(shares_, this);
  lanes_.resize(1 + Pick(3));
  for (Lane& lane : lanes_) {
    lane.session = std::make_unique<SimulatedSession>(this, max_tokens_);
    if (shares_.small_tokens > 0) {
      lane.pauses =
          std::make_unique<SimulatedPauses>(this, shares_.small_tokens);
      lane.session->SetPauses(lane.pauses.get());
    }
    lane.runner = std::make_unique<BatchRunner>(
        lane.session.get(), queue_.get(), limits_, this, VirtualNow);
  }
}

// Before a new request's first input: one turn of each request of its
// caller, and one of small ones that come later; and of every other caller as
// much, and what it may be behind or ahead of that by turns and small requests.
int64_t Simulation::MostAhead(uint64_t caller) const {
  const int64_t longest = limits_.max_len;
  const int64_t turn = shares_.caller_share + longest;
  const int64_t lead = shares_.request_share + longest;
  int64_t own = lead;
  for (const auto& story : stories_) {
    if (story->refused || story->call->caller.id != caller) continue;
    if (story->taken == static_cast<int32_t>(story->lengths.size())) continue;
    own += lead;
  }
  return own + (kCallers - 1) * (own + 2 * (turn + lead) + turn);
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
  // A cancel may come between tokenizing and queueing.
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
  limits.min_idle_tokens = Pick(static_cast<int>(max_tokens_));
  limits.sessions = static_cast<int>(lanes_.size());
  limits.idle_sessions = static_cast<int>(
      std::count_if(lanes_.begin(), lanes_.end(),
                    [](const Lane& other) { return !other.busy; }));
  const int64_t waiting = queue_sequences_;
  queue_->TryTake(limits, virtual_now, &lane->work);
  Check(waiting == 0 || !lane->work.taken.empty() || queue_sequences_ == 0,
        "work waits while a session is free");
  CheckTaken(lane->work, max_tokens_);
  lane->busy = true;
}

void Simulation::CheckTaken(const Work& work, int64_t max_tokens) {
  int64_t tokens = 0;
  for (const auto& [call, slice] : work.taken) {
    Story* story = stories_[call->id].get();
    if (story->taken == 0) {
      Check(taken_tokens_ + tokens - story->taken_before <= story->most_ahead,
            absl::StrCat("request ", call->id, " starved: ",
                         taken_tokens_ + tokens - story->taken_before,
                         " tokens went before it, at most ", story->most_ahead,
                         " may; shares ", shares_.caller_share, " ",
                         shares_.request_share, " ", shares_.small_tokens));
    }
    Check(slice.first == story->taken, "inputs are taken out of order or lost");
    Check(!story->cancelled, "a cancelled request is taken");
    Check(virtual_now < story->deadline, "an expired request is taken");
    story->taken += slice.count;
    ++story->slices;
    const auto first = story->lengths.begin() + slice.first;
    tokens = std::accumulate(first, first + slice.count, tokens);
  }
  Check(tokens <= max_tokens, "a batch is planned beyond its tokens");
  taken_tokens_ += tokens;
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

std::string RunSchedule(uint64_t seed, SimulationCounts* counts) {
  return Simulation(seed, counts).Run();
}

}  // namespace encoderd
