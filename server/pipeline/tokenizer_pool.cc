#include "server/pipeline/tokenizer_pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/start_thread.h"
#include "server/base/steady_time.h"
#include "server/pipeline/errors.h"

namespace encoderd {
namespace {

// Smaller slices cost more in locks than they gain in spread, larger ones make
// others wait.
constexpr int64_t kMinSliceBytes = 1 << 10;
constexpr int64_t kMaxSliceBytes = 16 << 10;

}  // namespace

bool Tokenize(const Slice& slice, const InputEncoder& encoder,
              TokenizerScratch* scratch, Encoding* buffer, absl::Time now,
              Call* call) {
  try {
    if (now >= call->latest_start())
      call->Fail(Call::Fate::kGone, call->ExpiredNow());
    for (int32_t i = 0; i < slice.count && call->alive(); ++i) {
      call->inputs.Tokenize(slice.first + i, encoder, scratch, buffer);
    }
  } catch (...) {  // no memory: the thread and the other calls continue
    call->Fail(Call::Fate::kFailed, InternalFaultError(NewErrorId()));
  }
  return call->inputs.Account(slice.count, SteadyNow() - now);
}

TokenizerPool::TokenizerPool(const InputEncoder* encoder, int threads,
                             int64_t at_once_bytes, Handler tokenized)
    : encoder_(*encoder),
      tokenized_(std::move(tokenized)),
      num_threads_(std::max(threads, 1)),
      at_once_bytes_(at_once_bytes),
      workspaces_(num_threads_) {
  // Created here, so that a failure fails the start.
  threads_.reserve(num_threads_);
  free_.reserve(num_threads_);
  for (Workspace& workspace : workspaces_) {
    workspace.scratch = encoder_.tokenizer().NewScratch();
    free_.push_back(&workspace);
  }
  try {
    for (int i = 0; i < num_threads_; ++i) {
      threads_.push_back(
          StartThread(absl::StrCat("tokenize-", i), [this] { Run(); }));
    }
  } catch (...) {
    End();
    throw;
  }
}

TokenizerPool::~TokenizerPool() { End(); }

void TokenizerPool::End() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
    available_.NotifyAll(&mutex_);
  }
  for (std::thread& thread : threads_) thread.join();
}

void TokenizerPool::Add(std::shared_ptr<Call> call) {
  const std::vector<Input>& inputs = call->inputs.waiting();
  int64_t total = 0;
  for (const Input& input : inputs) total += InputBytes(input);
  if (total <= at_once_bytes_ && TokenizeAtOnce(call)) return;
  // Two slices per thread, so that the threads finish about together.
  const int64_t target =
      std::clamp(total / (2 * num_threads_), kMinSliceBytes, kMaxSliceBytes);
  TokenizerLane::Job small{call, {}};
  TokenizerLane::Job large{call, {}};
  Slice slice;
  int64_t bytes = 0;
  const auto close = [&] {
    if (slice.count > 0) small.parts.push_back({slice, bytes});
    slice.first += slice.count;
    slice.count = 0;
    bytes = 0;
  };
  for (const Input& input : inputs) {
    const int64_t size = InputBytes(input);
    if (size > kLargeBytes) {
      close();
      large.parts.push_back({{slice.first++, 1}, size});
      continue;
    }
    ++slice.count;
    bytes += size;
    if (bytes >= target) close();
  }
  close();
  const size_t slices = small.parts.size() + large.parts.size();

  MutexLock lock(&mutex_);
  const bool in_both = !small.parts.empty() && !large.parts.empty();
  if (!small.parts.empty()) small_.Add(std::move(small));
  try {
    if (!large.parts.empty()) large_.Add(std::move(large));
  } catch (...) {
    if (in_both) small_.RemoveLast(call->caller.id);
    throw;
  }
  if (slices > 1) {
    available_.NotifyAll(&mutex_);
  } else {
    available_.NotifyOne(&mutex_);
  }
}

bool TokenizerPool::TokenizeAtOnce(const std::shared_ptr<Call>& call) noexcept {
  Workspace* workspace = nullptr;
  {
    MutexLock lock(&mutex_);
    if (free_.empty() || !small_.empty() || LargeMayRun() ||
        at_once_running_ >= std::max(num_threads_ / 2, 1))
      return false;
    ++at_once_running_;
    workspace = free_.back();
    free_.pop_back();
  }
  const Slice all = {0, static_cast<int32_t>(call->inputs.size())};
  Tokenize(all, encoder_, workspace->scratch.get(), &workspace->buffer,
           SteadyNow(), call.get());
  Done(workspace, Way::kAtOnce);
  tokenized_(call);  // last: once the call is answered, this may be destroyed
  return true;
}

bool TokenizerPool::LargeMayRun() const {
  return !large_.empty() && large_running_ < std::max(num_threads_ - 1, 1) &&
         (small_.empty() || small_since_large_ >= kSmallPerLarge);
}

TokenizerPool::Workspace* TokenizerPool::Next(std::shared_ptr<Call>* call,
                                              Slice* slice, Way* way) {
  MutexLock lock(&mutex_);
  while (free_.empty() || (!LargeMayRun() && small_.empty())) {
    if (stopped_ && small_.empty() && large_.empty()) return nullptr;
    available_.Wait(&mutex_);
  }
  Workspace* const workspace = free_.back();
  free_.pop_back();
  const bool large = LargeMayRun();
  *way = large ? Way::kLarge : Way::kSmall;
  if (large) {
    ++large_running_;
    small_since_large_ = 0;
  } else {
    ++small_since_large_;
  }
  (large ? large_ : small_).Take(call, slice);
  return workspace;
}

void TokenizerPool::Done(Workspace* workspace, Way way) {
  const bool large = way == Way::kLarge;
  if (large)
    workspace->buffer = Encoding();  // memory of a huge text is not kept
  MutexLock lock(&mutex_);
  free_.push_back(workspace);
  if (large) --large_running_;
  if (way == Way::kAtOnce) --at_once_running_;
  if (large || stopped_) {
    available_.NotifyAll(&mutex_);
  } else if (!small_.empty() || !large_.empty()) {
    available_.NotifyOne(&mutex_);
  }
}

void TokenizerPool::Run() {
  std::shared_ptr<Call> call;
  Slice slice;
  Way way = Way::kSmall;
  while (Workspace* const workspace = Next(&call, &slice, &way)) {
    const bool last = Tokenize(slice, encoder_, workspace->scratch.get(),
                               &workspace->buffer, SteadyNow(), call.get());
    Done(workspace, way);
    if (last) tokenized_(std::move(call));
    call.reset();
  }
}

}  // namespace encoderd
