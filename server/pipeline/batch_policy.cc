#include "server/pipeline/batch_policy.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>

namespace encoderd {

void BatchPolicy::Add(uint64_t request, uint64_t caller, absl::Time deadline,
                      std::vector<int32_t> lengths) {
  const auto [known, is_new] = callers_.try_emplace(caller);
  Caller& of = known->second;
  if (is_new) {
    of.id = caller;
    turns_.Enter(caller);
  }
  const int64_t tokens =
      std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  waiting_sequences_ += static_cast<int64_t>(lengths.size());
  waiting_tokens_ += tokens;
  const bool small = tokens <= shares_.small_tokens;
  if (!small && of.small.size() == of.requests.size()) of.small_served = 0;
  of.requests.push_back(
      {request, &of, deadline, std::move(lengths), 0, 0, tokens, small, {}});
  const auto place = std::prev(of.requests.end());
  place_of_[request] = place;
  if (small) {
    place->small_place = of.small.insert(of.small.end(), place);
    waiting_small_tokens_ += tokens;
  }
  UpdateSmall(of);
  if (deadline != absl::InfiniteFuture()) {
    deadlines_.emplace(deadline, request);
  }
}

void BatchPolicy::SetDeadline(uint64_t request, absl::Time deadline) {
  const auto found = place_of_.find(request);
  if (found == place_of_.end() || found->second->deadline == deadline) return;
  deadlines_.erase({found->second->deadline, request});
  found->second->deadline = deadline;
  if (deadline != absl::InfiniteFuture()) {
    deadlines_.emplace(deadline, request);
  }
}

void BatchPolicy::UpdateSmall(const Caller& caller) {
  const bool only_small = caller.small.size() == caller.requests.size();
  turns_.SetHasSmall(caller.id, !caller.small.empty() &&
                                    (only_small || caller.small_served <
                                                       shares_.request_share));
}

int32_t BatchPolicy::Erase(Place request) {
  const auto left =
      static_cast<int32_t>(request->lengths.size() - request->next);
  waiting_sequences_ -= left;
  waiting_tokens_ -= request->tokens_left;
  deadlines_.erase({request->deadline, request->id});
  place_of_.erase(request->id);
  Caller& caller = *request->caller;
  if (request->small) {
    waiting_small_tokens_ -= request->tokens_left;
    caller.small.erase(request->small_place);
  }
  caller.requests.erase(request);
  if (caller.requests.empty()) {
    const uint64_t id = caller.id;  // destroyed with the entry
    turns_.Leave(id);
    callers_.erase(id);
  } else {
    UpdateSmall(caller);
  }
  return left;
}

int32_t BatchPolicy::Remove(uint64_t request) {
  const auto found = place_of_.find(request);
  return found == place_of_.end() ? 0 : Erase(found->second);
}

std::vector<std::pair<uint64_t, int32_t>> BatchPolicy::RemoveAll() {
  std::vector<std::pair<uint64_t, int32_t>> removed;
  while (!place_of_.empty()) {
    const auto [id, request] = *place_of_.begin();
    removed.emplace_back(id, Erase(request));
  }
  return removed;
}

void BatchPolicy::RemoveExpired(absl::Time now, BatchDecision* decision) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const uint64_t id = deadlines_.begin()->second;
    decision->expired.emplace_back(id, Remove(id));
  }
}

int64_t BatchPolicy::Target(int64_t waiting, const BatchLimits& limits) {
  if (limits.idle_sessions > 1) {
    // Where most are busy, the idle cores would help their passes, not this.
    const bool most_idle = 2 * limits.idle_sessions > limits.sessions;
    return std::max(most_idle ? limits.min_idle_tokens : 0,
                    waiting / limits.idle_sessions);
  }
  return std::max(limits.min_tokens, waiting / std::max(limits.sessions, 1));
}

BatchPolicy::Place BatchPolicy::Turn() {
  std::list<Request>& requests = callers_.find(turns_.Turn())->second.requests;
  while (requests.front().served >= shares_.request_share) {
    requests.front().served -= shares_.request_share;
    requests.splice(requests.end(), requests, requests.begin());
  }
  return requests.begin();
}

std::optional<BatchPolicy::Place> BatchPolicy::SmallTurn() {
  const std::optional<uint64_t> caller = turns_.SmallTurn();
  if (!caller) return std::nullopt;
  return callers_.find(*caller)->second.small.front();
}

bool BatchPolicy::Give(Place request, BatchDecision* decision) {
  const int64_t length = request->lengths[request->next];
  std::vector<RequestSlice>& slices = decision->slices;
  if (slices.empty() || slices.back().request != request->id) {
    slices.push_back({request->id, static_cast<int32_t>(request->next), 0});
  }
  ++slices.back().count;
  decision->tokens += length;
  request->served += length;
  request->tokens_left -= length;
  waiting_tokens_ -= length;
  --waiting_sequences_;
  Caller& caller = *request->caller;
  turns_.Gave(caller.id, length);
  if (request->small) {
    waiting_small_tokens_ -= length;
    caller.small_served += length;
  } else {
    caller.small_served = 0;
  }
  UpdateSmall(caller);
  if (++request->next < request->lengths.size()) return false;
  Erase(request);
  return true;
}

bool BatchPolicy::Takes(int64_t tokens, int64_t length, int64_t target,
                        const BatchLimits& limits) {
  return tokens == 0 || (tokens + length <= limits.max_tokens &&
                         tokens + length / 2 <= target);
}

void BatchPolicy::GiveSmall(int64_t target, const BatchLimits& limits,
                            BatchDecision* decision) {
  while (const std::optional<Place> small = SmallTurn()) {
    if (!Takes(decision->tokens, (*small)->tokens_left, target, limits)) return;
    while (!Give(*small, decision)) {
    }
  }
}

BatchDecision BatchPolicy::Next(const BatchLimits& limits, absl::Time now) {
  BatchDecision decision;
  RemoveExpired(now, &decision);
  const bool long_waits = waiting_small_tokens_ < waiting_tokens_;
  if (small_waits() &&
      (!long_waits || small_in_a_row_ < shares_.request_share)) {
    decision.small = true;
    GiveSmall(Target(waiting_small_tokens_, limits), limits, &decision);
    small_in_a_row_ += decision.tokens;
    return decision;
  }
  small_in_a_row_ = 0;
  const int64_t target = Target(waiting_tokens_, limits);
  while (!empty()) {
    const Place request = Turn();
    const int64_t length = request->lengths[request->next];
    if (!Takes(decision.tokens, length, target, limits)) break;
    Give(request, &decision);
  }
  return decision;
}

BatchDecision BatchPolicy::NextSmall(int64_t max_tokens, absl::Time now) {
  BatchDecision decision;
  RemoveExpired(now, &decision);
  decision.small = true;
  BatchLimits limits;
  limits.max_tokens = max_tokens;
  GiveSmall(max_tokens, limits, &decision);
  return decision;
}

}  // namespace encoderd
