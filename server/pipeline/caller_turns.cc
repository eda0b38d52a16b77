#include "server/pipeline/caller_turns.h"

#include <algorithm>
#include <limits>

namespace encoderd {

void CallerTurns::Insert(uint64_t id, const Caller& caller) {
  by_had_.insert(KeyOf(id, caller));
  if (caller.has_small) small_by_had_.insert(KeyOf(id, caller));
}

void CallerTurns::Erase(uint64_t id, const Caller& caller) {
  by_had_.erase(KeyOf(id, caller));
  small_by_had_.erase(KeyOf(id, caller));
}

void CallerTurns::Enter(uint64_t caller) {
  Caller entered;
  entered.arrival = ++arrivals_;
  time_ = std::max(time_, Least());
  entered.had = Start();
  const auto left = left_.find(caller);
  if (left != left_.end()) {
    entered.had = std::max(entered.had, left->second);
    left_by_had_.erase({left->second, caller});
    left_.erase(left);
  }
  callers_.emplace(caller, entered);
  Insert(caller, entered);
}

void CallerTurns::Leave(uint64_t caller) {
  const auto found = callers_.find(caller);
  if (turn_ == caller) {
    turn_.reset();
  } else {
    Erase(caller, found->second);
  }
  if (found->second.had > Start()) {
    left_.emplace(caller, found->second.had);
    left_by_had_.emplace(found->second.had, caller);
  }
  callers_.erase(found);
}

void CallerTurns::SetHasSmall(uint64_t caller, bool has) {
  Caller& found = callers_.find(caller)->second;
  if (found.has_small == has) return;
  found.has_small = has;
  if (turn_ == caller) return;
  if (has) {
    small_by_had_.insert(KeyOf(caller, found));
  } else {
    small_by_had_.erase(KeyOf(caller, found));
  }
}

void CallerTurns::Gave(uint64_t caller, int64_t tokens) {
  Caller& found = callers_.find(caller)->second;
  if (turn_ == caller) {
    found.had += tokens;
    turn_left_ -= tokens;
    if (turn_left_ <= 0) EndTurn();
  } else {
    Erase(caller, found);
    found.had += tokens;
    Insert(caller, found);
  }
  Advance(tokens);
}

void CallerTurns::EndTurn() {
  Insert(*turn_, callers_.find(*turn_)->second);
  turn_.reset();
}

void CallerTurns::Advance(int64_t tokens) {
  rest_ += tokens;
  const auto waiting = static_cast<int64_t>(callers_.size());
  time_ += rest_ / waiting;
  rest_ %= waiting;
  while (!left_by_had_.empty() && left_by_had_.begin()->first <= Start()) {
    left_.erase(left_by_had_.begin()->second);
    left_by_had_.erase(left_by_had_.begin());
  }
}

int64_t CallerTurns::Least() const {
  if (callers_.empty()) return 0;
  int64_t least = std::numeric_limits<int64_t>::max();
  if (!by_had_.empty()) least = std::get<0>(*by_had_.begin());
  if (turn_) least = std::min(least, callers_.find(*turn_)->second.had);
  return least;
}

uint64_t CallerTurns::Turn() {
  if (!turn_) {
    turn_ = std::get<2>(*by_had_.begin());
    turn_left_ = share_;
    Erase(*turn_, callers_.find(*turn_)->second);
  }
  return *turn_;
}

std::optional<uint64_t> CallerTurns::SmallTurn() const {
  std::optional<uint64_t> best;
  int64_t had = Least() + small_lead_;  // at most
  if (!small_by_had_.empty() && std::get<0>(*small_by_had_.begin()) <= had) {
    had = std::get<0>(*small_by_had_.begin());
    best = std::get<2>(*small_by_had_.begin());
  }
  if (turn_) {
    const Caller& holder = callers_.find(*turn_)->second;
    if (holder.has_small && holder.had <= had) best = turn_;
  }
  return best;
}

}  // namespace encoderd
