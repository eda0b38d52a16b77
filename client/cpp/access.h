// How a client gets in: encryption, certificates and token of ClientOptions,
// read and checked before anything is dialed. Internal to the library and its
// command line; pure but for the files it reads.
#ifndef ENCODERD_CLIENT_CPP_ACCESS_H_
#define ENCODERD_CLIENT_CPP_ACCESS_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/cpp/options.h"

namespace encoderd::client {

struct Access {
  std::shared_ptr<grpc::ChannelCredentials> credentials;  // never null
  std::optional<bool> tls;  // unset: a caller's own credentials
  std::string token;        // empty: none
};

// Whether these options encrypt; those with a caller's own credentials aside.
bool UsesTls(const ClientOptions& options);

// Whether a token would cross the network unencrypted.
bool ExposesToken(const std::string& target, const ClientOptions& options);

// INVALID_ARGUMENT names the option, its file and what is wrong with it, never
// the token.
absl::StatusOr<Access> ReadAccess(const std::string& target,
                                  const ClientOptions& options);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_ACCESS_H_
