// The only place where an absl::Status becomes what a caller sees: a
// grpc::Status whose details are a google.rpc.Status with ErrorInfo (always),
// BadRequest (a field is to blame) and RetryInfo (trying again helps).
//
// Thread-safe: plain functions.
#ifndef ENCODERD_SERVER_RPC_STATUS_H_
#define ENCODERD_SERVER_RPC_STATUS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/status.h"

namespace encoderd {

inline constexpr char kErrorDomain[] = "encoderd";
// Bytes of message and details together: they share gRPC's 8 KiB of metadata
// with the caller's own.
inline constexpr int kMaxStatusBytes = 4096;

// The reason of a status's ErrorDetail; INTERNAL_FAULT where it has none.
std::string ReasonOf(const absl::Status& status);

// How long a caller should wait before it tries again; nullopt: trying again
// does not help. QUEUE_FULL 100 ms; LOADING 500 ms; every other UNAVAILABLE 1
// s.
std::optional<absl::Duration> RetryDelay(const absl::Status& status);

// A status that may leave the server. A status without a reason, or INTERNAL
// without an error_id, becomes INTERNAL_FAULT with an error_id and without its
// message, which goes to the log under that id. Every other stays as it is.
absl::Status Publish(const absl::Status& status);

// `status` is not OK and went through Publish. Never above max_bytes as long as
// a message and its metadata are not: violations give way. For answers that
// carry an error within them.
google::rpc::Status ToRpcStatus(const absl::Status& status,
                                int max_bytes = kMaxStatusBytes);

// `status` is not OK and went through Publish. Never above kMaxStatusBytes:
// violations give way, and texts are cut at 512 bytes.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_STATUS_H_
