// Bounds the bytes of answers that were handed to gRPC and that callers have
// not read: flow control keeps them in memory as long as a caller does not
// read. While they exceed the limit,
//  - an answer is refused to a connection that has others unread, and
//  - calls whose answer nobody read for kPatience are cut (reset), the oldest
//    first, until the rest fits.
// So an answer always goes to a connection that reads, and callers that read
// nothing hold the limit and one answer each. The error of a request of a
// stream is an answer like others; the status that ends a call is not counted.
//
// Thread-safe. Add and Remove are on the way of every answer: one short lock.
#ifndef ENCODERD_SERVER_RPC_UNREAD_ANSWERS_H_
#define ENCODERD_SERVER_RPC_UNREAD_ANSWERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace encoderd {

class AnsweringCall {
 public:
  virtual ~AnsweringCall() = default;
  // Ends the call without its answer. Any thread; a call that is over already
  // does nothing.
  virtual void Cut() = 0;
};

class UnreadAnswers {
 public:
  // How long an answer may stay unread while memory is scarce.
  static constexpr absl::Duration kPatience = absl::Seconds(10);

  explicit UnreadAnswers(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // `call`, on the connection `caller`, has `bytes` more to be read. May cut
  // other calls on this thread. RESOURCE_EXHAUSTED, QUEUE_FULL
  // (unread_answer_bytes, limit): the limit is reached.
  absl::Status Add(const std::shared_ptr<AnsweringCall>& call, uint64_t caller,
                   int64_t bytes, absl::Time now);
  // This many bytes of its answers were read: its time starts again.
  void Remove(AnsweringCall* call, int64_t bytes, absl::Time now);
  // The call is over.
  void RemoveAll(AnsweringCall* call);

  int64_t bytes() const;
  int64_t calls_cut() const;  // so far

 private:
  struct Entry {
    std::shared_ptr<AnsweringCall> call;
    uint64_t caller = 0;
    int64_t number = 0;  // in oldest_, while it has bytes and is not reset
    absl::Time since;    // when bytes were last added or read
    int64_t bytes = 0;
    bool cut = false;
  };

  std::vector<std::shared_ptr<AnsweringCall>> CutOldest(int64_t needed,
                                                        absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Put(const std::shared_ptr<AnsweringCall>& call, uint64_t caller,
           int64_t bytes, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Take(Entry* entry, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Puts an entry to the end of oldest_.
  void Touch(Entry* entry, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int64_t max_bytes_;
  mutable absl::Mutex mu_;
  int64_t numbers_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t calls_cut_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t cut_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // of bytes_: about to be freed
  std::unordered_map<AnsweringCall*, Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::map<int64_t, Entry*> oldest_ ABSL_GUARDED_BY(mu_);
  // Unread bytes per connection with unread bytes.
  std::unordered_map<uint64_t, int64_t> callers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_UNREAD_ANSWERS_H_
