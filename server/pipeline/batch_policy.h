// Which sequences go into the next batch: a pure rule over queued lengths,
// without thread, lock or clock.
//
// A request waits as a list of lengths; a batch is a list of slices, each some
// consecutive sequences of one request. The rule:
//   1. Requests past their deadline leave before anything is picked.
//   2. Work-conserving: if anything waits, it returns a batch at once.
//   3. The caller that has received the least goes first, for `caller_share`
//   tokens;
//      then the one that has received the least by then (caller_turns.h).
//      Within a caller its requests take turns, `request_share` tokens each,
//      oldest first.
//   4. A small request (at most `small_tokens` in all) does not wait for its
//      caller's turn, unless its caller is a `request_share` ahead of the
//      waiting caller that has received the least, or has had as much in small
//      requests since its last long one had its turn. Its batch has small
//      requests only, each as a whole. After a `request_share` of them a batch
//      goes by turns, if long ones wait. NextSmall returns only small ones, for
//      pauses of a long pass.
//   5. A batch has at most max_tokens. When little waits, it is split equally
//      over the idle Sessions; while most Sessions are idle, into batches of
//      about min_idle_tokens at least. The busy ones find work when they
//      return.
// So every wait has a bound in tokens: a few turns of each waiting caller, and
// of each request of the same caller. Age does not matter: an age bound would
// give a flooding caller the whole device back once its queue is old. Cost:
// O(log n) per picked sequence and per request.
#ifndef ENCODERD_SERVER_PIPELINE_BATCH_POLICY_H_
#define ENCODERD_SERVER_PIPELINE_BATCH_POLICY_H_

#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/pipeline/caller_turns.h"

namespace encoderd {

struct FairShares {
  int64_t caller_share = 1;   // tokens of one caller's turn
  int64_t request_share = 1;  // tokens of one request's turn within its caller
  // The size limit of a small request, at most that of a batch; 0: none is
  // small.
  int64_t small_tokens = 0;
};

struct BatchLimits {
  int64_t max_tokens = 0;  // of the batch; at least the longest sequence
  int64_t min_tokens = 0;  // of a batch, if all other Sessions are busy
  // Of a batch, about, while most Sessions are idle: their cores share it.
  int64_t min_idle_tokens = 0;
  int sessions = 1;       // all
  int idle_sessions = 1;  // waiting for work, including the one that asks
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
  bool small = false;  // small requests alone, before their turn
  std::vector<std::pair<uint64_t, int32_t>> expired;  // request, sequences left
};

// Not thread-safe.
class BatchPolicy {
 public:
  explicit BatchPolicy(const FairShares& shares)
      : shares_(shares), turns_(shares.caller_share, shares.request_share) {}
  BatchPolicy(const BatchPolicy&) = delete;
  BatchPolicy& operator=(const BatchPolicy&) = delete;

  // lengths: tokens of each sequence, at least one, each >= 1. `request` is
  // new.
  void Add(uint64_t request, uint64_t caller, absl::Time deadline,
           std::vector<int32_t> lengths);
  // Of a request; nothing if none of its sequences waits.
  void SetDeadline(uint64_t request, absl::Time deadline);
  // Removes a request; returns how many of its sequences waited.
  int32_t Remove(uint64_t request);
  // Removes all requests.
  std::vector<std::pair<uint64_t, int32_t>> RemoveAll();
  // Removes the next batch.
  BatchDecision Next(const BatchLimits& limits, absl::Time now);
  // Removes a batch of small requests, if small_waits; at most `max_tokens`,
  // which is not less than small_tokens.
  BatchDecision NextSmall(int64_t max_tokens, absl::Time now);

  bool empty() const { return waiting_sequences_ == 0; }
  // Whether a small request waits that may go before its caller's turn.
  bool small_waits() const { return turns_.SmallTurn().has_value(); }
  int64_t waiting_sequences() const { return waiting_sequences_; }
  int64_t waiting_tokens() const { return waiting_tokens_; }

 private:
  struct Caller;
  struct Request;
  using Place = std::list<Request>::iterator;
  struct Request {
    uint64_t id;
    Caller* caller;
    absl::Time deadline;
    std::vector<int32_t> lengths;
    size_t next = 0;     // first sequence that still waits
    int64_t served = 0;  // tokens of this turn
    int64_t tokens_left = 0;
    bool small = false;
    std::list<Place>::iterator small_place;  // of a small one
  };
  struct Caller {
    uint64_t id = 0;
    std::list<Request> requests;  // a ring: the front's turn
    std::list<Place> small;       // the small ones, oldest first
    int64_t small_served = 0;     // tokens since a long one had its turn
  };

  static int64_t Target(int64_t waiting, const BatchLimits& limits);
  void RemoveExpired(absl::Time now, BatchDecision* decision);
  // The request whose turn it is; the queue must not be empty.
  Place Turn();
  std::optional<Place> SmallTurn();
  // Whether its small requests may go before its turn -> turns_.
  void UpdateSmall(const Caller& caller);
  // Its next sequence goes into the batch; true: it was the last one.
  bool Give(Place request, BatchDecision* decision);
  // Whether a batch of this many tokens takes `length` more: near the target.
  static bool Takes(int64_t tokens, int64_t length, int64_t target,
                    const BatchLimits& limits);
  // Small requests, each as a whole, while the batch takes them.
  void GiveSmall(int64_t target, const BatchLimits& limits,
                 BatchDecision* decision);
  int32_t Erase(Place request);

  const FairShares shares_;
  CallerTurns turns_;
  std::unordered_map<uint64_t, Caller> callers_;
  std::unordered_map<uint64_t, Place> place_of_;
  std::set<std::pair<absl::Time, uint64_t>> deadlines_;  // the finite ones
  int64_t waiting_sequences_ = 0;
  int64_t waiting_tokens_ = 0;
  int64_t waiting_small_tokens_ = 0;
  int64_t small_in_a_row_ =
      0;  // tokens of such batches since the last batch by turns
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_BATCH_POLICY_H_
