// What went wrong before a server could answer, in plain words. Internal to
// the library. Thread-safe: pure functions.
#ifndef ENCODERD_CLIENT_CPP_HANDSHAKE_H_
#define ENCODERD_CLIENT_CPP_HANDSHAKE_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace encoderd::client {

// The same error; if it is gRPC's own of a connection that two sides could not
// agree on, plain words and what to do stand before gRPC's. `tls`: whether the
// client encrypts.
grpc::Status ExplainHandshake(const grpc::Status& status, bool tls);

// Whether an error was explained so: a server is there, but not for us.
bool IsHandshakeError(const absl::Status& status);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_HANDSHAKE_H_
