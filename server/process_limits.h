// What the process may have of the system, compared before gRPC starts with
// what a server takes at least: gRPC ends the process, or waits forever, where
// it gets no thread or descriptor.
#ifndef ENCODERD_SERVER_PROCESS_LIMITS_H_
#define ENCODERD_SERVER_PROCESS_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/config.h"

namespace encoderd {

// Threads besides the main one, on a host of `cores` cores, of which gRPC's are
// an estimate. More cores than two take more.
int32_t LeastThreads(const ServerConfig& config, int32_t cores);

// RESOURCE_EXHAUSTED, with the number and what limits it: fewer threads can be
// started at once than LeastThreads, or fewer than 32 descriptors be open. Call
// before other threads exist.
absl::Status CheckProcessLimits(const ServerConfig& config);

// The same of a count of threads.
absl::Status CheckThreads(int32_t count);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PROCESS_LIMITS_H_
