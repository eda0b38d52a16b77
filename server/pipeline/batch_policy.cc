#include "server/pipeline/batch_policy.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace encoderd {

void BatchPolicy::Add(uint64_t request, uint64_t caller, absl::Time deadline,
                      std::vector<int32_t> lengths) {
  const auto [known, is_new] = caller_of_.try_emplace(caller);
  if (is_new) {
    known->second = callers_.insert(callers_.end(), Caller{caller, {}, 0});
  }
  const auto at = known->second;
  const int64_t tokens =
      std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  waiting_sequences_ += static_cast<int64_t>(lengths.size());
  waiting_tokens_ += tokens;
  at->requests.push_back({request, deadline, std::move(lengths), 0, 0, tokens});
  place_of_[request] = {at, std::prev(at->requests.end())};
  if (deadline != absl::InfiniteFuture()) {
    deadlines_.emplace(deadline, request);
  }
}

int32_t BatchPolicy::Erase(Place place) {
  const Request& request = *place.request;
  const auto left = static_cast<int32_t>(request.lengths.size() - request.next);
  waiting_sequences_ -= left;
  waiting_tokens_ -= request.tokens_left;
  deadlines_.erase({request.deadline, request.id});
  place_of_.erase(request.id);
  place.caller->requests.erase(place.request);
  if (place.caller->requests.empty()) {
    caller_of_.erase(place.caller->id);
    callers_.erase(place.caller);
  }
  return left;
}

int32_t BatchPolicy::Remove(uint64_t request) {
  const auto found = place_of_.find(request);
  return found == place_of_.end() ? 0 : Erase(found->second);
}

std::vector<std::pair<uint64_t, int32_t>> BatchPolicy::RemoveAll() {
  std::vector<std::pair<uint64_t, int32_t>> removed;
  while (!callers_.empty()) {
    const auto caller = callers_.begin();
    const auto request = caller->requests.begin();
    const uint64_t id = request->id;
    removed.emplace_back(id, Erase({caller, request}));
  }
  return removed;
}

int64_t BatchPolicy::Target(int64_t waiting, const BatchLimits& limits) {
  if (limits.idle_sessions > 1) return waiting / limits.idle_sessions;
  return std::max(limits.min_tokens, waiting / std::max(limits.sessions, 1));
}

BatchPolicy::Place BatchPolicy::Turn() {
  while (true) {
    const auto caller = callers_.begin();
    if (caller->served >= shares_.caller_share) {
      caller->served -= shares_.caller_share;
      callers_.splice(callers_.end(), callers_, caller);
      continue;
    }
    const auto request = caller->requests.begin();
    if (request->served < shares_.request_share) return {caller, request};
    request->served -= shares_.request_share;
    caller->requests.splice(caller->requests.end(), caller->requests, request);
  }
}

BatchDecision BatchPolicy::Next(const BatchLimits& limits, absl::Time now) {
  BatchDecision decision;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const uint64_t id = deadlines_.begin()->second;
    decision.expired.emplace_back(id, Remove(id));
  }
  const int64_t target = Target(waiting_tokens_, limits);
  while (!empty()) {
    const Place place = Turn();
    Request& request = *place.request;
    const int64_t length = request.lengths[request.next];
    if (decision.tokens > 0 && (decision.tokens + length > limits.max_tokens ||
                                decision.tokens + length / 2 > target)) {
      break;
    }
    const auto index = static_cast<int32_t>(request.next);
    if (!decision.slices.empty() &&
        decision.slices.back().request == request.id) {
      ++decision.slices.back().count;
    } else {
      decision.slices.push_back({request.id, index, 1});
    }
    decision.tokens += length;
    place.caller->served += length;
    request.served += length;
    request.tokens_left -= length;
    waiting_tokens_ -= length;
    --waiting_sequences_;
    if (++request.next == request.lengths.size()) Erase(place);
  }
  return decision;
}

}  // namespace encoderd
