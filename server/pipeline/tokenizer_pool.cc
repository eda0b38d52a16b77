#include "server/pipeline/tokenizer_pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/start_thread.h"

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
  if (now >= call->latest_start()) {
    call->Fail(Call::Fate::kGone, call->ExpiredNow());
  }
  try {
    for (int32_t i = 0; i < slice.count && call->alive(); ++i) {
      call->inputs.Tokenize(slice.first + i, encoder, scratch, buffer);
    }
  } catch (...) {  // no memory: the thread and the other calls continue
    call->Fail(Call::Fate::kFailed, InternalFaultError(NewErrorId()));
  }
  return call->inputs.Account(slice.count, absl::Now() - now);
}

TokenizerPool::TokenizerPool(const InputEncoder* encoder, int threads,
                             Handler tokenized)
    : encoder_(*encoder),
      tokenized_(std::move(tokenized)),
      num_threads_(std::max(threads, 1)) {
  // Created here, so that a failure fails the start.
  threads_.reserve(num_threads_);
  for (int i = 0; i < num_threads_; ++i) {
    scratches_.push_back(encoder_.tokenizer().NewScratch());
  }
  try {
    for (int i = 0; i < num_threads_; ++i) {
      threads_.push_back(
          StartThread(absl::StrCat("tokenize-", i), [this, i] { Run(i); }));
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
    available_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void TokenizerPool::Add(std::shared_ptr<Call> call) {
  const std::vector<Input>& inputs = call->inputs.waiting();
  int64_t total = 0;
  for (const Input& input : inputs) total += InputBytes(input);
  // Two slices per thread, so that the threads finish about together.
  const int64_t target =
      std::clamp(total / (2 * num_threads_), kMinSliceBytes, kMaxSliceBytes);
  Job small{call, {}, 0};
  Job large{call, {}, 0};
  Slice slice;
  int64_t bytes = 0;
  const auto close = [&] {
    if (slice.count > 0) small.slices.push_back(slice);
    slice.first += slice.count;
    slice.count = 0;
    bytes = 0;
  };
  for (const Input& input : inputs) {
    const int64_t size = InputBytes(input);
    if (size > kLargeBytes) {
      close();
      large.slices.push_back({slice.first++, 1});
      continue;
    }
    ++slice.count;
    bytes += size;
    if (bytes >= target) close();
  }
  close();
  const size_t slices = small.slices.size() + large.slices.size();

  MutexLock lock(&mutex_);
  const bool in_both = !small.slices.empty() && !large.slices.empty();
  if (!small.slices.empty()) small_.push_back(std::move(small));
  try {
    if (!large.slices.empty()) large_.push_back(std::move(large));
  } catch (...) {
    if (in_both) small_.pop_back();
    throw;
  }
  if (slices > 1) {
    available_.NotifyAll();
  } else {
    available_.NotifyOne();
  }
}

bool TokenizerPool::LargeMayRun() const {
  return !large_.empty() && large_running_ < std::max(num_threads_ - 1, 1) &&
         (small_.empty() || small_since_large_ >= kSmallPerLarge);
}

bool TokenizerPool::Next(std::shared_ptr<Call>* call, Slice* slice,
                         bool* large) {
  MutexLock lock(&mutex_);
  while (!LargeMayRun() && small_.empty()) {
    if (stopped_ && large_.empty()) return false;
    available_.Wait(&mutex_);
  }
  *large = LargeMayRun();
  if (*large) {
    ++large_running_;
    small_since_large_ = 0;
  } else {
    ++small_since_large_;
  }
  std::deque<Job>& lane = *large ? large_ : small_;
  Job job = std::move(lane.front());
  lane.pop_front();
  *slice = job.slices[job.next++];
  if (job.next < job.slices.size()) {
    *call = job.call;
    lane.push_back(std::move(job));  // the next call's turn
  } else {
    *call = std::move(job.call);
  }
  return true;
}

void TokenizerPool::LargeDone() {
  MutexLock lock(&mutex_);
  --large_running_;
  available_.NotifyAll();
}

void TokenizerPool::Run(int index) {
  TokenizerScratch* const scratch = scratches_[index].get();
  Encoding buffer;
  std::shared_ptr<Call> call;
  Slice slice;
  bool large = false;
  while (Next(&call, &slice, &large)) {
    const bool last =
        Tokenize(slice, encoder_, scratch, &buffer, absl::Now(), call.get());
    if (large) {
      LargeDone();
      buffer = Encoding();  // memory of a huge text is not kept
    }
    if (last) tokenized_(std::move(call));
    call.reset();
  }
}

}  // namespace encoderd
