// encoderd.v1.Encoder over gRPC's callback API, as raw bytes: gRPC's own
// parser would answer a bad message with an empty UNIMPLEMENTED. Thread-safe.
#ifndef ENCODERD_SERVER_RPC_SERVICE_H_
#define ENCODERD_SERVER_RPC_SERVICE_H_

#include <memory>
#include <vector>

#include "grpcpp/impl/service_type.h"
#include "server/observe/metrics.h"
#include "server/rpc/call_environment.h"

namespace encoderd {

// `environment` and what it points to outlive the gRPC server and the
// pipelines, which may still work on abandoned calls.
std::unique_ptr<grpc::Service> NewEncoderService(
    const CallEnvironment& environment);

// Its methods, as in the contract.
std::vector<ServedMethod> EncoderMethods();

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_SERVICE_H_
