#include "server/pipeline/tokenizer_lane.h"

#include <utility>

namespace encoderd {

void TokenizerLane::Add(Job job) {
  const uint64_t caller = job.call->caller.id;
  std::list<Job> jobs;
  jobs.push_back(std::move(job));
  std::list<uint64_t> turn = {caller};
  const auto [found, is_new] = jobs_of_.try_emplace(caller);  // the last throw
  found->second.splice(found->second.end(), jobs);
  if (is_new) turns_.splice(turns_.end(), turn);
}

void TokenizerLane::RemoveLast(uint64_t caller) noexcept {
  const auto found = jobs_of_.find(caller);
  found->second.pop_back();
  if (!found->second.empty()) return;
  jobs_of_.erase(found);
  turns_.pop_back();  // it was new, so its turn is the last
}

void TokenizerLane::Take(std::shared_ptr<Call>* call, Slice* slice) noexcept {
  const auto found = jobs_of_.find(turns_.front());
  std::list<Job>& jobs = found->second;
  Job& job = jobs.front();
  const Part& part = job.parts[job.next++];
  *slice = part.slice;
  turn_bytes_ += part.bytes;
  if (job.next < job.parts.size()) {
    *call = job.call;
    jobs.splice(jobs.end(), jobs, jobs.begin());  // the next call's turn
  } else {
    *call = std::move(job.call);
    jobs.pop_front();
  }
  if (!jobs.empty() && turn_bytes_ < kTurnBytes) return;
  turn_bytes_ = 0;
  if (jobs.empty()) {
    jobs_of_.erase(found);
    turns_.pop_front();
  } else {
    turns_.splice(turns_.end(), turns_, turns_.begin());
  }
}

}  // namespace encoderd
