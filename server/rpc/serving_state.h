// Whether the server accepts work, and how many calls are in flight.
//
//   loading -> serving -> draining;  any -> device_lost
//
// Thread-safe; Enter and Leave are the hot path: atomics.
#ifndef ENCODERD_SERVER_RPC_SERVING_STATE_H_
#define ENCODERD_SERVER_RPC_SERVING_STATE_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"

namespace encoderd {

class ServingState {
 public:
  enum class Phase { kLoading, kServing, kDraining, kDeviceLost };

  Phase phase() const { return phase_.load(); }
  // Serving ends permanently with draining or a lost device: a phase never
  // returns to an earlier one. False: the phase is unchanged.
  bool Advance(Phase phase);

  // From loading directly to draining. True: no call was ever admitted and none
  // will be. False: it is serving already, or later.
  bool AbandonLoading();

  // From now on rejections of unary calls are held back (in
  // CallEnvironment::held) until the server has stopped reading: a caller that
  // waits for one sends nothing more, so every connection is soon between two
  // calls.
  void HoldRefusals() { holding_ = true; }
  bool holding_refusals() const { return holding_; }

  // Every call enters, refused ones too, and leaves when its answer has gone
  // to the transport. One that is refused before any work is no longer owed an
  // answer: however many callers come while the server drains, unanswered() is
  // 0 once there is nothing left to lose.
  void Enter() {
    in_flight_.fetch_add(1);
    unanswered_.fetch_add(1);
  }
  void Refuse() { unanswered_.fetch_sub(1); }
  void Leave(bool refused = false) {
    if (!refused) unanswered_.fetch_sub(1);
    in_flight_.fetch_sub(1);
  }
  int64_t in_flight() const { return in_flight_.load(); }
  int64_t unanswered() const { return unanswered_.load(); }

  // OK while serving; UNAVAILABLE (LOADING or DRAINING) otherwise. Called after
  // Enter, so that draining followed by unanswered() == 0 means that no
  // accepted call is left.
  absl::Status Admit() const;

 private:
  std::atomic<Phase> phase_{Phase::kLoading};
  std::atomic<int64_t> in_flight_{0};
  std::atomic<int64_t> unanswered_{0};
  std::atomic<bool> holding_{false};
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_SERVING_STATE_H_
