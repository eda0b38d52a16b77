// Prepares errors for callers, independent of the protocol. Thread-safe: plain
// functions.
#ifndef ENCODERD_SERVER_API_PUBLISH_H_
#define ENCODERD_SERVER_API_PUBLISH_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace encoderd {

// The reason of a status's ErrorDetail; INTERNAL_FAULT if it has none.
std::string ReasonOf(const absl::Status& status);

// How long a caller should wait before it retries; nullopt: a retry does not
// help. QUEUE_FULL: as the queue drains (pipeline/queue_pace.h), and 500 ms at
// a limit that is not its tokens; LOADING 500 ms; every other UNAVAILABLE 1 s.
std::optional<absl::Duration> RetryDelay(const absl::Status& status);

// The status for the caller. A status without a reason, or INTERNAL without an
// error_id, becomes INTERNAL_FAULT with an error_id and without its message,
// which goes to the log under that id. All others are unchanged. Of each event
// at most kFaultLinesAtOnce lines are logged at once, then one each
// kFaultLineInterval.
absl::Status Publish(const absl::Status& status);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_API_PUBLISH_H_
