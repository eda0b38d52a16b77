// What went wrong before a server could answer, in plain words. Internal to
// the library and its command line. Thread-safe: pure functions.
#ifndef ENCODERD_CLIENT_CPP_HANDSHAKE_H_
#define ENCODERD_CLIENT_CPP_HANDSHAKE_H_

#include <grpcpp/support/status.h>

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace encoderd::client {

// Why there is no connection to an encoderd.
enum class ConnectionFault {
  kUnknown,      // only gRPC's own words tell
  kRefused,      // no server listens at the target
  kHttp,         // a server there speaks HTTP, not gRPC
  kNoName,       // the target's host name is unknown
  kSilent,       // something accepts connections and does not answer
  kUnreachable,  // no way leads there
  kSecurity,     // encryption, certificates: the message names the options
};

// The fault that ExplainHandshake found, of the status that the client library
// returned; nullopt: the error is another.
std::optional<ConnectionFault> GetConnectionFault(const absl::Status& status);

// The same error; if it is gRPC's own of a connection that was never made,
// plain words that name `target` and what to do instead of gRPC's. Where the
// cause is not certain, gRPC's words follow. GetConnectionFault tells the
// cause. `tls`: whether the client encrypts; unset: not known.
grpc::Status ExplainHandshake(const grpc::Status& status,
                              std::optional<bool> tls,
                              absl::string_view target);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_HANDSHAKE_H_
