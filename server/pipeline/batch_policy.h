// Which sequences go into the next batch: a pure rule over queued lengths,
// without a thread, a lock or a clock.
//
// A request waits as a list of lengths; a batch is a list of slices, each some
// consecutive sequences of one request. The rule:
//   1. What is past its deadline leaves, before anything is picked.
//   2. Work-conserving: if anything waits, a batch is given at once.
//   3. Callers take turns, `caller_share` tokens each; within a caller its
//      requests take turns, `request_share` tokens each, oldest first. So small
//      requests are served whole and in order of arrival, a long one is sliced
//      across batches, and neither a long request nor a caller with thousands
//      of requests keeps others waiting for more than one turn of each other
//      caller and request. Whoever takes more than its share (sequences are not
//      cut) has it deducted from its next turn. No age enters: turns alone
//      bound every wait, and an age bound would give a flooding caller the
//      whole device back once its queue is old.
//   4. A batch has at most max_tokens. When little waits, it is cut so that
//      every idle Session gets an even part, and the busy ones find something
//      when they come back.
// Cost: O(1) for each sequence picked, O(log n) for each request.
#ifndef ENCODERD_SERVER_PIPELINE_BATCH_POLICY_H_
#define ENCODERD_SERVER_PIPELINE_BATCH_POLICY_H_

#include <cstdint>
#include <list>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace encoderd {

struct FairShares {
  int64_t caller_share = 1;   // tokens of one caller's turn
  int64_t request_share = 1;  // tokens of one request's turn within its caller
};

struct BatchLimits {
  int64_t max_tokens = 0;  // of the batch; at least the longest sequence
  int64_t min_tokens = 0;  // not worth cutting below while others are busy
  int sessions = 1;        // all
  int idle_sessions = 1;   // waiting for work, the asking one included
};

// Sequences first .. first+count-1 of a request.
struct RequestSlice {
  uint64_t request = 0;
  int32_t first = 0;
  int32_t count = 0;
};

struct BatchDecision {
  std::vector<RequestSlice> slices;  // the batch, in order
  int64_t tokens = 0;
  std::vector<std::pair<uint64_t, int32_t>> expired;  // request, sequences left
};

// Not thread-safe.
class BatchPolicy {
 public:
  explicit BatchPolicy(const FairShares& shares) : shares_(shares) {}
  BatchPolicy(const BatchPolicy&) = delete;
  BatchPolicy& operator=(const BatchPolicy&) = delete;

  // lengths: tokens of each sequence, at least one, each >= 1. `request` is
  // new.
  void Add(uint64_t request, uint64_t caller, absl::Time deadline,
           std::vector<int32_t> lengths);
  // Takes a request out; how many of its sequences waited.
  int32_t Remove(uint64_t request);
  // Takes every request out.
  std::vector<std::pair<uint64_t, int32_t>> RemoveAll();
  // Takes the next batch out.
  BatchDecision Next(const BatchLimits& limits, absl::Time now);

  bool empty() const { return waiting_sequences_ == 0; }
  int64_t waiting_sequences() const { return waiting_sequences_; }
  int64_t waiting_tokens() const { return waiting_tokens_; }

 private:
  struct Request {
    uint64_t id;
    absl::Time deadline;
    std::vector<int32_t> lengths;
    size_t next = 0;     // first sequence that still waits
    int64_t served = 0;  // tokens of this turn
    int64_t tokens_left = 0;
  };
  struct Caller {
    uint64_t id;
    std::list<Request> requests;  // a ring: the front's turn
    int64_t served = 0;
  };
  struct Place {
    std::list<Caller>::iterator caller;
    std::list<Request>::iterator request;
  };

  static int64_t Target(int64_t waiting, const BatchLimits& limits);
  // The request whose turn it is; the queue must not be empty.
  Place Turn();
  int32_t Erase(Place place);

  const FairShares shares_;
  std::list<Caller> callers_;  // a ring: the front's turn; none is empty
  std::unordered_map<uint64_t, std::list<Caller>::iterator> caller_of_;
  std::unordered_map<uint64_t, Place> place_of_;
  std::set<std::pair<absl::Time, uint64_t>> deadlines_;  // the finite ones
  int64_t waiting_sequences_ = 0;
  int64_t waiting_tokens_ = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_BATCH_POLICY_H_
