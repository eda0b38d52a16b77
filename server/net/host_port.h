// Addresses that a server listens on.
#ifndef ENCODERD_SERVER_NET_HOST_PORT_H_
#define ENCODERD_SERVER_NET_HOST_PORT_H_

#include <string>

#include "absl/status/statusor.h"

namespace encoderd {

struct HostPort {
  std::string host;  // without the brackets of an IPv6 address
  int port = 0;      // 0: any free one
};

// "host:port" or "[v6]:port". INVALID_ARGUMENT otherwise.
absl::StatusOr<HostPort> ParseHostPort(const std::string& address);

// Whether other machines can reach it.
bool OthersReach(const HostPort& address);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_NET_HOST_PORT_H_
