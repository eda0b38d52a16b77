// Redirects gRPC's messages to the server's log: one line per event, escaped,
// truncated, rate-limited, never blocking (see server/base/log.h). gRPC itself
// would write to standard error whatever a caller put into a header, line
// breaks included, and block until it is read.
#ifndef ENCODERD_SERVER_RPC_GRPC_LOG_H_
#define ENCODERD_SERVER_RPC_GRPC_LOG_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "server/observe/labels.h"

namespace encoderd {

// For the rest of the process; may be called again. Thread-safe. GRPC_VERBOSITY
// sets what gRPC reports (default ERROR).
void TakeGrpcLog();

// TLS handshakes that failed since TakeGrpcLog, by TlsFault.
std::array<int64_t, kNumTlsFaults> TlsHandshakesFailed();

// What a message of gRPC says about a handshake; empty if it is about something
// else.
std::optional<TlsFault> TlsFaultOf(absl::string_view message);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_GRPC_LOG_H_
