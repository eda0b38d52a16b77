// The only place where a published absl::Status (api/publish.h) becomes what a
// caller of gRPC sees: a grpc::Status whose details are a google.rpc.Status
// with ErrorInfo (always), BadRequest (a field is to blame) and RetryInfo
// (trying again helps).
//
// Thread-safe: plain functions.
#ifndef ENCODERD_SERVER_RPC_STATUS_H_
#define ENCODERD_SERVER_RPC_STATUS_H_

#include "absl/status/status.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/status.h"
#include "server/api/publish.h"

namespace encoderd {

inline constexpr char kErrorDomain[] = "encoderd";
// Bytes of message and details together: they share gRPC's 8 KiB of metadata
// with the caller's own.
inline constexpr int kMaxStatusBytes = 4096;

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
