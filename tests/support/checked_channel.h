// A channel that looks at every error it gets, whether its test does or not:
// each has an ErrorInfo, as ReadError wants it, but for those that gRPC makes
// by itself, which are listed.
#ifndef ENCODERD_TESTS_SUPPORT_CHECKED_CHANNEL_H_
#define ENCODERD_TESTS_SUPPORT_CHECKED_CHANNEL_H_

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace encoderd {

// As grpc::CreateCustomChannel.
std::shared_ptr<grpc::Channel> NewCheckedChannel(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const grpc::ChannelArguments& arguments);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_CHECKED_CHANNEL_H_
