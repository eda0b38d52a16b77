// A deterministic simulation of the queue: the real WorkQueue, Calls, Admission
// and BatchRunners, driven by one thread, a virtual clock and a seeded choice
// of what happens next (submit, cancel, expire, start a batch, end a batch,
// device faults). One seed is one schedule; the same seed is the same schedule.
#ifndef ENCODERD_TESTS_UNIT_SERVER_PIPELINE_SIMULATION_H_
#define ENCODERD_TESTS_UNIT_SERVER_PIPELINE_SIMULATION_H_

#include <cstdint>
#include <string>

namespace encoderd {

// What a run of many schedules has met, so that a test can tell that every
// branch was taken.
struct SimulationCounts {
  int64_t ok = 0;
  int64_t cancelled = 0;
  int64_t expired = 0;
  int64_t faults = 0;       // INTERNAL
  int64_t unavailable = 0;  // waiting when the device was lost
  int64_t queue_full = 0;
  int64_t batches = 0;
  int64_t retried_batches = 0;
  int64_t sliced_requests = 0;
  int64_t pauses = 0;  // in which something was computed
};

// Runs one schedule; "" or what was wrong. Adds to *counts.
//
// Held: every request is answered exactly once, with its own values in order or
// with an error that has a cause; no input is lost, computed twice or taken out
// of order; what was cancelled or expired before its batch is not computed; no
// batch exceeds its tokens; a free Session never leaves work waiting; a request
// waits for a few turns of every other caller and request at most before its
// own first turn, whatever is computed in pauses; permits and gauges return to
// zero.
std::string RunSchedule(uint64_t seed, SimulationCounts* counts);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_UNIT_SERVER_PIPELINE_SIMULATION_H_
