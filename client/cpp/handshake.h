// What went wrong before a server could answer, in plain words. Internal to
// the library. Thread-safe: pure functions.
#ifndef ENCODERD_CLIENT_CPP_HANDSHAKE_H_
#define ENCODERD_CLIENT_CPP_HANDSHAKE_H_

#include <grpcpp/support/status.h>

#include "absl/strings/string_view.h"

namespace encoderd::client {

// The same error; if it is gRPC's own of a connection that was never made,
// plain words that name `target` and what to do instead of gRPC's. Where the
// cause is not certain, gRPC's words follow. `tls`: whether the client
// encrypts.
grpc::Status ExplainHandshake(const grpc::Status& status, bool tls,
                              absl::string_view target);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_HANDSHAKE_H_
