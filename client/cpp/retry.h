// When a call or stream that failed is tried again. Internal to the library and
// its command line. Thread-safe: functions, pure but for pauses that are spread
// at random.
#ifndef ENCODERD_CLIENT_CPP_RETRY_H_
#define ENCODERD_CLIENT_CPP_RETRY_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace encoderd::client {

// Between two attempts of a call.
inline constexpr absl::Duration kLeastPause = absl::Milliseconds(10);

// The pause after which a refused call is made again: the server loads its
// model, or its queue is full, and it named a pause that ends before
// `deadline`. Adds at random up to half of it, or of what is then left.
// Otherwise nullopt.
std::optional<absl::Duration> RetryPause(const absl::Status& status,
                                         absl::Time deadline);

// The pause after which a stream that ended with `status` is opened again:
// `backoff`, or longer if a server that is full asks for that; at random up to
// half as long again.
absl::Duration ReopenPause(const absl::Status& status, absl::Duration backoff);

// The pause after which a call is made again whose server has gone: there is no
// connection, or it shuts down and cancels calls. nullopt for any other error,
// or where `deadline` comes first. Not for a call that this client cancelled.
std::optional<absl::Duration> ReturnPause(const absl::Status& status,
                                          absl::Time deadline);

// The pause after attempt `attempt`, from 1 on, of a request that is too long
// for gRPC to send it again (RetryBufferBytes): as many attempts as
// service_config.json has gRPC make of others, after its pauses. nullopt for a
// permanent error, such as a size that the server does not take, after the
// last attempt, or where `deadline` comes first.
std::optional<absl::Duration> LongRequestPause(const absl::Status& status,
                                               int attempt,
                                               absl::Time deadline);

// What to say of a call: the deadline that passed during a further attempt
// explains less than `passing`, why the attempt before was refused. A deadline
// that the server itself explains is left as it is.
absl::Status AfterRetries(const absl::Status& status,
                          const absl::Status& passing);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_RETRY_H_
