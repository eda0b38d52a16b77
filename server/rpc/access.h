// Who calls, and whether they may: the bearer token of a call's metadata
// (authorization: Bearer TOKEN) if the server has tokens, else its connection.
// Thread-safe.
#ifndef ENCODERD_SERVER_RPC_ACCESS_H_
#define ENCODERD_SERVER_RPC_ACCESS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "server/pipeline/request.h"
#include "server/security/secrets.h"

namespace encoderd {

// Held while the call is processed.
struct AccessPass {
  Caller caller;
  std::shared_ptr<void> open_call;  // of a token; counts against its limit
};

// The same for all calls of one connection.
uint64_t ConnectionOf(const grpc::ServerContextBase& context);

// `secrets`: null admits everyone. `connection`: identifies the caller without
// tokens. UNAUTHENTICATED (BEARER_TOKEN_MISSING,
// BEARER_TOKEN_UNKNOWN); RESOURCE_EXHAUSTED (QUEUE_FULL): the token has reached
// its limit of calls.
absl::StatusOr<AccessPass> Admit(const Secrets* secrets,
                                 const grpc::ServerContextBase& context,
                                 uint64_t connection);

// The same, without counting it as a call: only UNAUTHENTICATED.
absl::StatusOr<Caller> CallerOf(const Secrets* secrets,
                                const grpc::ServerContextBase& context,
                                uint64_t connection);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_ACCESS_H_
