// Limits for gRPC's own reflection service. Of its requests, whose cost grows
// with the square of the dots in a name: a name of a megabyte holds a lock, and
// with it every call that an error ends, for minutes. And of its answers, which
// in gRPC 1.51 repeat all files of those before them on the same call.
//
// gRPC calls it for the methods of reflection only. Thread-safe.
#ifndef ENCODERD_SERVER_RPC_REFLECTION_LIMIT_H_
#define ENCODERD_SERVER_RPC_REFLECTION_LIMIT_H_

#include <cstddef>

#include "grpcpp/support/server_interceptor.h"

namespace encoderd {

// Names of this contract are below 100 bytes.
inline constexpr size_t kMaxReflectionRequestBytes = 1024;

class ReflectionLimit final
    : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // One that empties larger requests before the service sees them: an empty one
  // is answered with an error (INVALID_ARGUMENT), and the call goes on. It
  // empties the last answer before the next one. Null for other methods.
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_REFLECTION_LIMIT_H_
