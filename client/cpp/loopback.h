// Whether a gRPC target is this machine. Internal to the library. Pure.
#ifndef ENCODERD_CLIENT_CPP_LOOPBACK_H_
#define ENCODERD_CLIENT_CPP_LOOPBACK_H_

#include "absl/strings/string_view.h"

namespace encoderd::client {

// True for localhost, 127.0.0.0/8, ::1 and sockets of the file system, in
// every form that gRPC takes: with or without port, "dns:", "ipv4:", "ipv6:",
// "unix:". False for what is not certain, such as a name that another resolver
// is asked for.
bool IsLoopback(absl::string_view target);

// True for the name localhost, which may have two addresses: ::1, 127.0.0.1.
bool IsLocalhost(absl::string_view target);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_LOOPBACK_H_
