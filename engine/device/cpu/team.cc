#include "engine/device/cpu/team.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/start_thread.h"
#include "engine/device/cpu/cpu_info.h"

namespace encoderd {
namespace cpu {
namespace {

// Some 50 us: longer than an op that a helper has no part in, too short to
// cost other programs much.
constexpr int kSpins = 2000;

// At how many parts a thread looks, its own first. Not measured on more than
// two cores.
constexpr int32_t kNeighbors = 8;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // Stalls for some ten cycles; `yield` is a no-op on most cores.
  asm volatile("isb" ::: "memory");
#else
  std::this_thread::yield();
#endif
}

}  // namespace

struct Team::Pass::Op {
  const Share& share;
  int32_t parts;
  int32_t slices;
};

Team::Team(int32_t cores) : cores_(std::max(cores, 1)) {
  helpers_.reserve(cores_);
  for (int32_t i = 1; i < cores_; ++i) {
    try {
      auto helper = std::make_unique<Helper>();
      Helper* const of_thread = helper.get();
      helper->thread = StartThread(absl::StrCat("team-", i),
                                   [this, of_thread] { Work(of_thread); });
      helpers_.push_back(std::move(helper));
    } catch (...) {
      break;  // passes have less help, and the same bits
    }
  }
}

Team::~Team() {
  for (const auto& helper : helpers_) {
    helper->state = State::kStop;
    helper->state.notify_one();
    helper->thread.join();
  }
}

void Team::Work(Helper* helper) {
  while (true) {
    State state = helper->state.load(std::memory_order_acquire);
    for (int i = 0; state == State::kIdle && i < kSpins; ++i) {
      Pause();
      state = helper->state.load(std::memory_order_acquire);
    }
    if (state == State::kStop) return;
    if (state == State::kIdle) {
      if (helper->state.compare_exchange_strong(state, State::kAsleep))
        helper->state.wait(State::kAsleep, std::memory_order_acquire);
      continue;
    }
    // The pass takes its job back if it is done first.
    if (!helper->state.compare_exchange_strong(state, State::kTaken,
                                               std::memory_order_acquire)) {
      continue;
    }
    const Job& job = helper->job;
    job.pass->Compute(*job.op, job.part, helper->scratch.data());
    helper->state.store(State::kIdle, std::memory_order_release);
  }
}

Team::Pass::Pass(Team* team) : team_(team) {
  helpers_.reserve(team_->helpers_.size());  // Adjust must not throw
  ++team_->passes_;
}

Team::Pass::~Pass() {
  while (!helpers_.empty()) team_->LetGo(this);
  team_->SetWantsHelp(false, this);
  --team_->passes_;
}

void Team::Adjust(int32_t most, Pass* pass) {
  SetWantsHelp(most > 0, pass);
  const int32_t wanting = std::max<int32_t>(wanting_, 1);
  const int32_t for_them = cores() - (passes_ - wanting);
  const int32_t share = (for_them + wanting - 1) / wanting - 1;  // helpers
  while (!pass->helpers_.empty() &&
         (lent_ + passes_ > cores() ||
          static_cast<int32_t>(pass->helpers_.size()) > share)) {
    LetGo(pass);
  }
  most = std::min(most, share);
  for (int32_t i = 0; i < static_cast<int32_t>(helpers_.size()); ++i) {
    if (static_cast<int32_t>(pass->helpers_.size()) >= most ||
        lent_ + passes_ >= cores()) {
      return;
    }
    if (helpers_[i]->lent.exchange(true)) continue;
    ++lent_;
    pass->helpers_.push_back(i);
  }
}

void Team::SetWantsHelp(bool wants, Pass* pass) {
  if (pass->wants_help_ == wants) return;
  pass->wants_help_ = wants;
  wanting_ += wants ? 1 : -1;
}

void Team::LetGo(Pass* pass) {
  helpers_[pass->helpers_.back()]->lent = false;
  pass->helpers_.pop_back();
  --lent_;
}

int32_t Team::Pass::Threads(int32_t most) {
  if (!team_->helpers_.empty()) team_->Adjust(most - 1, this);
  return std::min(static_cast<int32_t>(helpers_.size()) + 1, most);
}

std::atomic<int32_t>& Team::Pass::NextOf(int32_t part) {
  return part == 0 ? next_ : team_->helpers_[helpers_[part - 1]]->next;
}

void Team::Pass::ComputeRest(const Op& op, int32_t part, void* scratch) {
  std::atomic<int32_t>& next = NextOf(part);
  // A load first: threads that only look do not take the line of cache, and
  // `next` stays small.
  while (next.load(std::memory_order_relaxed) < op.slices) {
    const int32_t slice = next.fetch_add(1, std::memory_order_relaxed);
    if (slice < op.slices)
      op.share({part, op.parts, slice, op.slices}, scratch);
  }
}

void Team::Pass::Compute(const Op& op, int32_t part, void* scratch) {
  for (int32_t i = 0; i < std::min(kNeighbors, op.parts); ++i)
    ComputeRest(op, (part + i) % op.parts, scratch);
}

void Team::Pass::Run(int32_t parts, int32_t slices, void* scratch,
                     Share share) {
  const Op op = {share, parts, slices};
  for (int32_t part = 0; part < parts; ++part)
    NextOf(part).store(0, std::memory_order_relaxed);
  for (int32_t part = 1; part < parts; ++part) {
    Helper& helper = *team_->helpers_[helpers_[part - 1]];
    helper.job = {this, &op, part};
    if (helper.state.exchange(State::kPosted) == State::kAsleep)
      helper.state.notify_one();
  }
  Compute(op, 0, scratch);
  // What no helper has taken, since it has not woken up yet.
  for (int32_t part = 1; part < parts; ++part) {
    State state = State::kPosted;
    if (team_->helpers_[helpers_[part - 1]]->state.compare_exchange_strong(
            state, State::kIdle, std::memory_order_acquire)) {
      ComputeRest(op, part, scratch);
    }
  }
  for (int32_t part = 1; part < parts; ++part) {
    const Helper& helper = *team_->helpers_[helpers_[part - 1]];
    for (int i = 0; helper.Busy(); ++i) {
      if (i < kSpins) {
        Pause();
      } else {
        std::this_thread::yield();  // it has lost its core for a while
      }
    }
  }
}

absl::Status Team::Reserve(int64_t bytes) {
  for (const auto& helper : helpers_) {
    while (helper->lent.exchange(true)) std::this_thread::yield();
    absl::Status status;  // an error leaves what passes of others need
    if (bytes > helper->reserved) {
      status = Allocate(bytes, "scratch", &helper->scratch);
      if (status.ok()) helper->reserved = bytes;
    }
    helper->lent = false;
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::shared_ptr<Team> SharedTeam() {
  static std::mutex mu;
  static std::weak_ptr<Team> shared;
  const std::lock_guard<std::mutex> lock(mu);
  std::shared_ptr<Team> team = shared.lock();
  if (team == nullptr) {
    team = std::make_shared<Team>(AvailableCores());
    shared = team;
  }
  return team;
}

}  // namespace cpu
}  // namespace encoderd
