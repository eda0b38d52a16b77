// The settings in the terms of each part that they are for.
#ifndef ENCODERD_SERVER_PART_OPTIONS_H_
#define ENCODERD_SERVER_PART_OPTIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/model.h"
#include "server/config.h"
#include "server/pipeline/pipeline.h"
#include "server/rpc/grpc_server.h"
#include "server/security/secrets.h"
#include "server/trace/tracer.h"

namespace encoderd {

SecretFiles SecretFilesOf(const ServerConfig& config);

// INVALID_ARGUMENT: the address, which Validate has refused.
absl::StatusOr<GrpcServerOptions> GrpcOptionsOf(const ServerConfig& config);

ModelOptions ModelOptionsOf(const ServerConfig& config);

PipelineOptions PipelineOptionsOf(const ServerConfig& config);

// Null where the settings ask for no tracing.
std::unique_ptr<Tracer> NewTracer(const ServerConfig& config);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PART_OPTIONS_H_
