// A listening TCP socket, bound here: for gRPC's accept loop and HTTP.
#ifndef ENCODERD_SERVER_NET_LISTEN_SOCKET_H_
#define ENCODERD_SERVER_NET_LISTEN_SOCKET_H_

#include "absl/status/statusor.h"
#include "server/net/host_port.h"

namespace encoderd {

struct ListenSocket {
  int fd = -1;   // non-blocking; the caller closes it
  int port = 0;  // the bound port
};

// The host: a numeric address or a name that resolves to one. Two
// processes never share a port. Errors have the address, the port, the system's
// reason and how to find the process that uses the port: UNAVAILABLE;
// FAILED_PRECONDITION, a name that has no address or a port that needs a
// privilege; RESOURCE_EXHAUSTED, out of descriptors or memory.
absl::StatusOr<ListenSocket> Listen(const HostPort& address);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_NET_LISTEN_SOCKET_H_
