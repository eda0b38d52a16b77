// Whose turn it is among the waiting callers: the one that has received the
// least.
//
// What a caller has received is counted in tokens on one scale for all, as in
// start-time fair queueing (Goyal, Vin and Cheng, 1996). Virtual time advances
// by the tokens given divided by the number of waiting callers; a new caller
// begins a turn before it, or where it left off if that is later. So a caller
// that asks rarely goes before one that floods, one that comes and goes gains
// and loses nothing, and a series of new callers passes an old one only until
// virtual time is a turn beyond its position.
//
// A pure rule without a clock. Not thread-safe. Costs O(log n) per turn.
#ifndef ENCODERD_SERVER_PIPELINE_CALLER_TURNS_H_
#define ENCODERD_SERVER_PIPELINE_CALLER_TURNS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace encoderd {

class CallerTurns {
 public:
  // share: tokens of a turn, at least 1. small_lead: how far a caller with a
  // small request may be ahead of the one that has received the least.
  CallerTurns(int64_t share, int64_t small_lead)
      : share_(share), small_lead_(small_lead) {}

  // A caller waits from now on, until it leaves.
  void Enter(uint64_t caller);
  void Leave(uint64_t caller);
  // Whether a small request of a waiting caller may go before its turn.
  void SetHasSmall(uint64_t caller, bool has);
  // A waiting caller is given this much.
  void Gave(uint64_t caller, int64_t tokens);

  // Whose turn it is; at least one caller must wait.
  uint64_t Turn();
  // Of the callers with a small request, the one that has received the least,
  // unless its lead is too large.
  std::optional<uint64_t> SmallTurn() const;

  // For tests: callers that left but whose account is still kept.
  size_t remembered() const { return left_.size(); }

 private:
  struct Caller {
    int64_t had = 0;
    uint64_t arrival = 0;
    bool has_small = false;
  };
  using Key = std::tuple<int64_t, uint64_t, uint64_t>;  // had, arrival, id

  static Key KeyOf(uint64_t id, const Caller& caller) {
    return {caller.had, caller.arrival, id};
  }
  void Insert(uint64_t id, const Caller& caller);
  void Erase(uint64_t id, const Caller& caller);
  void EndTurn();
  // What a waiting caller has received; 0: nobody waits.
  int64_t Least() const;
  void Advance(int64_t tokens);
  // The starting account of a newcomer.
  int64_t Start() const { return time_ - share_; }

  const int64_t share_;
  const int64_t small_lead_;
  std::unordered_map<uint64_t, Caller> callers_;  // that wait
  // Those whose turn it is not, and those of them with a small request.
  std::set<Key> by_had_;
  std::set<Key> small_by_had_;
  std::optional<uint64_t> turn_;
  int64_t turn_left_ = 0;  // tokens
  uint64_t arrivals_ = 0;
  int64_t time_ = 0;  // virtual, in tokens
  int64_t rest_ = 0;  // of the last division
  // Callers that left with more than a newcomer starts with.
  std::unordered_map<uint64_t, int64_t> left_;
  std::set<std::pair<int64_t, uint64_t>> left_by_had_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_CALLER_TURNS_H_
