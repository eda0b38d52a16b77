// The address of a server, checked before gRPC dials it: gRPC takes a port
// past 65535 modulo 65536, and 443 where there is none. Internal to the
// library and its command line. Pure.
#ifndef ENCODERD_CLIENT_CPP_TARGET_H_
#define ENCODERD_CLIENT_CPP_TARGET_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace encoderd::client {

// `target` with the port 8400 where it names none: "host", "host:port", an
// IPv6 address with or without brackets, or these after "dns:", "ipv4:" or
// "ipv6:". Other names of gRPC's, such as "unix:/path", stay as they are.
// INVALID_ARGUMENT says what to write instead of a URL, of a port that is not
// from 1 to 65535, or of an address without a host. The Python client has the
// same rules (tests/support/targets.txt).
absl::StatusOr<std::string> CheckTarget(absl::string_view target);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_TARGET_H_
