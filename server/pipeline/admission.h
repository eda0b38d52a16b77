// Admission: one counter of tokens and one of text bytes, and permits that hold
// a share of them.
//
// The rule. The number of tokens of a text is known only after tokenization, so
// a request is admitted twice. At Submit it takes its bytes and an estimate of
// its tokens (a quarter of a text's bytes plus the special tokens, at most
// max_len per input and at most the whole limit; id lists count exactly); after
// tokenizing, the permit returns the bytes and replaces the estimate by the
// true count. Either step fails with QUEUE_FULL if it does not fit into the
// queue now, and with REQUEST_TOO_LARGE if it would not fit into an empty
// queue. Tokens stay taken until the answer exists, so that ids and results of
// all requests are bounded too. A caller with its own limit is held to it in
// the same way. Rejection costs a few comparisons.
#ifndef ENCODERD_SERVER_PIPELINE_ADMISSION_H_
#define ENCODERD_SERVER_PIPELINE_ADMISSION_H_

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/mutex.h"
#include "server/pipeline/request.h"

namespace encoderd {

class Admission;

// A share of the queue; returned when destroyed. Move-only. The Admission must
// outlive it. Not thread-safe.
class Permit {
 public:
  Permit() = default;
  Permit(Permit&& other) noexcept { *this = std::move(other); }
  Permit& operator=(Permit&& other) noexcept;
  ~Permit() { Release(); }

  // Returns the bytes and holds `tokens` from now on. QUEUE_FULL or
  // REQUEST_TOO_LARGE if they do not fit: the permit is unchanged then.
  absl::Status Settle(int64_t tokens);
  void Release();

  int64_t tokens() const { return tokens_; }

 private:
  friend class Admission;
  Admission* admission_ = nullptr;
  Caller caller_;
  int64_t tokens_ = 0;
  int64_t bytes_ = 0;
};

// Thread-safe.
class Admission {
 public:
  Admission(int64_t max_tokens, int64_t max_bytes)
      : max_tokens_(max_tokens), max_bytes_(max_bytes) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // estimated: the tokens are a guess, cut to the limit and never
  // REQUEST_TOO_LARGE.
  absl::StatusOr<Permit> Admit(int64_t tokens, bool estimated, int64_t bytes,
                               const Caller& caller = {});

  int64_t tokens() const;
  int64_t bytes() const;
  int64_t max_tokens() const { return max_tokens_; }
  int64_t max_bytes() const { return max_bytes_; }

 private:
  friend class Permit;
  absl::Status Exchange(const Permit& held, int64_t new_tokens,
                        int64_t new_bytes);
  // What a caller with a limit has queued, in addition to what is held; 0 for
  // others.
  int64_t OthersOf(const Permit& held) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetTokensOf(const Caller& caller, int64_t tokens)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t max_tokens_;
  const int64_t max_bytes_;
  mutable Mutex mutex_;
  int64_t tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // For callers with their own limit that hold some.
  std::unordered_map<uint64_t, int64_t> tokens_of_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_ADMISSION_H_
