#include "server/pipeline/tokenizer_pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/pipeline/thread_name.h"

namespace encoderd {
namespace {

// Smaller pieces cost more in locks than they gain in spread, larger ones make
// others wait.
constexpr int64_t kMinPieceBytes = 1 << 10;
constexpr int64_t kMaxPieceBytes = 16 << 10;

}  // namespace

TokenizerPool::TokenizerPool(const InputEncoder* encoder, int threads,
                             Handler tokenized)
    : encoder_(*encoder),
      tokenized_(std::move(tokenized)),
      num_threads_(std::max(threads, 1)) {
  // Made here, where a failure is one of the start.
  for (int i = 0; i < num_threads_; ++i) {
    scratches_.push_back(encoder_.tokenizer().NewScratch());
  }
  try {
    for (int i = 0; i < num_threads_; ++i) {
      threads_.emplace_back([this, i] { Run(i); });
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
  const std::vector<PipelineInput>& inputs = call->inputs();
  int64_t total = 0;
  for (const PipelineInput& input : inputs) total += InputBytes(input);
  // Two pieces a thread, so that the threads finish about together.
  const int64_t target =
      std::clamp(total / (2 * num_threads_), kMinPieceBytes, kMaxPieceBytes);
  Job small{call, {}, 0};
  Job large{call, {}, 0};
  Piece piece;
  int64_t bytes = 0;
  const auto close = [&] {
    if (piece.last > piece.first) small.pieces.push_back(piece);
    piece.first = piece.last;
    bytes = 0;
  };
  for (const PipelineInput& input : inputs) {
    const int64_t size = InputBytes(input);
    if (size > kLargeBytes) {
      close();
      large.pieces.push_back({piece.last, piece.last + 1});
      piece.first = ++piece.last;
      continue;
    }
    ++piece.last;
    bytes += size;
    if (bytes >= target) close();
  }
  close();
  const size_t pieces = small.pieces.size() + large.pieces.size();

  MutexLock lock(&mutex_);
  if (!small.pieces.empty()) small_.push_back(std::move(small));
  if (!large.pieces.empty()) large_.push_back(std::move(large));
  if (pieces > 1) {
    available_.NotifyAll();
  } else {
    available_.NotifyOne();
  }
}

bool TokenizerPool::LargeMayRun() const {
  return !large_.empty() && large_running_ < std::max(num_threads_ - 1, 1) &&
         (small_.empty() || small_since_large_ >= kSmallPerLarge);
}

bool TokenizerPool::Next(std::shared_ptr<Call>* call, Piece* piece,
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
  *piece = job.pieces[job.next++];
  if (job.next < job.pieces.size()) {
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
  SetThreadName(absl::StrCat("tokenize-", index));
  TokenizerScratch* const scratch = scratches_[index].get();
  Encoding buffer;
  std::shared_ptr<Call> call;
  Piece piece;
  bool large = false;
  while (Next(&call, &piece, &large)) {
    const bool last = call->EncodeInputs(piece.first, piece.last, encoder_,
                                         scratch, &buffer, absl::Now());
    if (large) {
      LargeDone();
      buffer = Encoding();  // memory of a huge text is not kept
    }
    if (last) tokenized_(std::move(call));
    call.reset();
  }
}

}  // namespace encoderd
