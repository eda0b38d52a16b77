// Threads tokenize-0 .. tokenize-N-1: the texts of all calls -> ids.
//
// A small call that comes while nothing waits is tokenized at once by the
// thread that adds it: waking another takes longer. At most N/2 are (but one
// may be), so that threads remain which read further calls. While anything
// waits, also of other callers, none is: it would be out of turn, and the pool
// is busy anyway. Any other call is cut into slices of a few KiB, so that one
// call with many texts uses every thread. Callers take turns, and so do the
// calls of each (tokenizer_lane.h): a call waits for one turn of every other
// caller, however many calls those have. A text over kLargeBytes is a separate
// slice in a second lane with the same turns: it runs when no small slice waits
// or after kSmallPerLarge small ones, and never on all threads at once (unless
// there is only one), so that a few huge texts do not delay the short ones. No
// more than N slices are tokenized at the same time, by whichever threads. The
// pool has no limit: admission bounds the bytes that wait here.
#ifndef ENCODERD_SERVER_PIPELINE_TOKENIZER_POOL_H_
#define ENCODERD_SERVER_PIPELINE_TOKENIZER_POOL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "server/base/mutex.h"
#include "server/pipeline/call.h"
#include "server/pipeline/input_encoder.h"
#include "server/pipeline/tokenizer_lane.h"

namespace encoderd {

// Tokenizes a slice of a call's inputs; true if they were its last ones. An
// exception from a tokenizer fails the call.
bool Tokenize(const Slice& slice, const InputEncoder& encoder,
              TokenizerScratch* scratch, Encoding* buffer, absl::Time now,
              Call* call);

class TokenizerPool {
 public:
  static constexpr int64_t kLargeBytes = 64 << 10;
  static constexpr int kSmallPerLarge = 8;

  // Called once all inputs of a call were processed, on a pool thread or within
  // Add. Must not throw.
  using Handler = std::function<void(std::shared_ptr<Call>)>;

  // `encoder` outlives the pool. threads >= 1. at_once_bytes: the
  // largest call that Add tokenizes itself, in InputBytes; 0: none. Throws what
  // NewScratch and the start of a thread throw.
  TokenizerPool(const InputEncoder* encoder, int threads, int64_t at_once_bytes,
                Handler tokenized);
  // Finishes what waits, joins the threads. No Add may be running whose call is
  // not answered yet.
  ~TokenizerPool();
  TokenizerPool(const TokenizerPool&) = delete;
  TokenizerPool& operator=(const TokenizerPool&) = delete;

  // Thread-safe; quick. If it throws (no memory), the call was not added.
  void Add(std::shared_ptr<Call> call);

 private:
  // What tokenizing a slice needs; there are as many as threads.
  struct Workspace {
    TokenizerScratchPtr scratch;
    Encoding buffer;
  };

  enum class Way { kAtOnce, kSmall, kLarge };

  void Run();
  void End();
  bool LargeMayRun() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False: not now, the call must queue. noexcept: after the handler, an
  // exception would make Submit answer a second time.
  bool TokenizeAtOnce(const std::shared_ptr<Call>& call) noexcept;
  // The next slice, and a workspace for it; null: stopped. *way: to be returned
  // when done.
  Workspace* Next(std::shared_ptr<Call>* call, Slice* slice, Way* way);
  void Done(Workspace* workspace, Way way);

  const InputEncoder& encoder_;
  const Handler tokenized_;
  const int num_threads_;
  const int64_t at_once_bytes_;

  Mutex mutex_;
  CondVar available_;
  TokenizerLane small_ ABSL_GUARDED_BY(mutex_);
  TokenizerLane large_ ABSL_GUARDED_BY(mutex_);
  int small_since_large_ ABSL_GUARDED_BY(mutex_) = 0;
  int large_running_ ABSL_GUARDED_BY(mutex_) = 0;
  int at_once_running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Workspace*> free_ ABSL_GUARDED_BY(mutex_);  // last used last

  std::vector<Workspace> workspaces_;
  std::vector<std::thread> threads_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_TOKENIZER_POOL_H_
