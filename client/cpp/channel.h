// The connection of a client: what every call carries and how its error reads
// is added here, in one place, for every method. Internal to the library.
#ifndef ENCODERD_CLIENT_CPP_CHANNEL_H_
#define ENCODERD_CLIENT_CPP_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/cpp/options.h"

namespace encoderd::client {

// The longest request that gRPC itself sends again, in bytes: as long as two
// calls of options.bytes_per_call, at least settings::kRetryBufferBytes, or 16
// MiB with a service config of the caller's.
int RetryBufferBytes(const ClientOptions& options);

// Reads the files of `options` and makes a channel that encrypts and carries
// the token as they say. Nothing is dialed. INVALID_ARGUMENT as ReadAccess.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const std::string& target, const ClientOptions& options,
    grpc::ChannelArguments arguments);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_CHANNEL_H_
