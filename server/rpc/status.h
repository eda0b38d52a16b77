// The only place where a published absl::Status (api/publish.h) becomes what a
// gRPC caller sees: a grpc::Status whose details are a google.rpc.Status with
// ErrorInfo (always), BadRequest (a field is at fault) and RetryInfo (a retry
// helps).
//
// Thread-safe: plain functions.
#ifndef ENCODERD_SERVER_RPC_STATUS_H_
#define ENCODERD_SERVER_RPC_STATUS_H_

#include "absl/status/status.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/status.h"

namespace encoderd {

inline constexpr char kErrorDomain[] = "encoderd";
// Bytes of message and details together: they share gRPC's 8 KiB of metadata
// with that of the caller.
inline constexpr int kMaxStatusBytes = 4096;

// `status` is not OK and went through Publish. At most max_bytes, unless
// message and metadata alone exceed it: violations are dropped. For answers
// that contain an error.
google::rpc::Status ToRpcStatus(const absl::Status& status,
                                int max_bytes = kMaxStatusBytes);

// `status` is not OK and went through Publish. At most kMaxStatusBytes:
// violations are dropped, and texts are cut at 512 bytes.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_STATUS_H_
