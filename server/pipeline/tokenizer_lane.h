// What waits to be tokenized, and which slice is next: callers take turns,
// however many calls each has.
//
// A turn ends with the slice that brings it to kTurnBytes: one long slice, or
// many short ones, so that a caller with short texts does not wait for a long
// one of another after each. A caller that begins to wait goes behind those
// that already do: each of them has one turn before it. Within a caller, its
// calls take turns, one slice each.
//
// A pure rule without a clock. Not thread-safe. Each slice costs O(1), however
// many callers and calls wait; memory is kept only for those that do.
#ifndef ENCODERD_SERVER_PIPELINE_TOKENIZER_LANE_H_
#define ENCODERD_SERVER_PIPELINE_TOKENIZER_LANE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "server/pipeline/call.h"
#include "server/pipeline/input.h"

namespace encoderd {

class TokenizerLane {
 public:
  static constexpr int64_t kTurnBytes = 16 << 10;

  struct Part {
    Slice slice;
    int64_t bytes = 0;
  };
  // Of one call, what waits in this lane.
  struct Job {
    std::shared_ptr<Call> call;
    std::vector<Part> parts;  // at least one
    size_t next = 0;
  };

  bool empty() const { return turns_.empty(); }

  // If it throws (no memory), nothing was added.
  void Add(Job job);
  // Undoes the last Add, if nothing was taken since.
  void RemoveLast(uint64_t caller) noexcept;
  // The next slice, and its call; not if empty. Allocates nothing.
  void Take(std::shared_ptr<Call>* call, Slice* slice) noexcept;

 private:
  std::unordered_map<uint64_t, std::list<Job>> jobs_of_;  // by caller; no list
                                                          // is empty
  std::list<uint64_t> turns_;  // the same callers; the first has the turn
  int64_t turn_bytes_ = 0;     // that it was given in this turn
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_TOKENIZER_LANE_H_
