#include "server/rpc/open_calls.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "server/pipeline/reasons.h"

namespace encoderd {

absl::Status GivenUpError() {
  return MakeError(
      absl::StatusCode::kUnavailable,
      "the server shut down before it could answer: retry on another server",
      {reason::kDraining, {}, ""});
}

int64_t OpenCalls::Add(std::shared_ptr<OpenCall> call, int64_t limit) {
  OpenCall* const added = call.get();
  Told told = Told::kNothing;
  int64_t open = 0;
  {
    absl::MutexLock lock(&mu_);
    open = static_cast<int64_t>(calls_.size());
    if (open >= limit) return open;
    calls_[added] = call;
    told = told_;
  }
  if (told >= Told::kDrain) added->Drain();
  if (told >= Told::kGiveUp) added->GiveUp();
  return open;
}

void OpenCalls::Remove(OpenCall* call) {
  std::shared_ptr<OpenCall> removed;  // ends without the lock
  absl::MutexLock lock(&mu_);
  const auto at = calls_.find(call);
  if (at == calls_.end()) return;
  removed = std::move(at->second);
  calls_.erase(at);
}

void OpenCalls::DrainAll() { Tell(Told::kDrain); }

void OpenCalls::GiveUpAll() { Tell(Told::kGiveUp); }

void OpenCalls::Tell(Told told) {
  std::vector<std::shared_ptr<OpenCall>> calls;
  {
    absl::MutexLock lock(&mu_);
    told_ = std::max(told_, told);
    for (const auto& entry : calls_) calls.push_back(entry.second);
  }
  for (const auto& call : calls) {
    told == Told::kDrain ? call->Drain() : call->GiveUp();
  }
}

int64_t OpenCalls::count() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int64_t>(calls_.size());
}

}  // namespace encoderd
