// TCP sockets of 127.0.0.1, by port, as tests need them where no gRPC is to be.
#ifndef ENCODERD_TESTS_SUPPORT_LOOPBACK_H_
#define ENCODERD_TESTS_SUPPORT_LOOPBACK_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

namespace encoderd {

// To be closed by the caller.
inline int NewTcpSocket() {
  return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

inline sockaddr_in LoopbackAddress(int port,
                                   const char* address = "127.0.0.1") {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, address, &to.sin_addr);
  return to;
}

// False: errno says why.
inline bool ConnectLoopback(int fd, int port) {
  const sockaddr_in to = LoopbackAddress(port);
  return connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0;
}

// Binds to `address` and a port that the system chooses. The port; 0: there is
// none.
inline int BindLoopback(int fd, const char* address = "127.0.0.1") {
  sockaddr_in at = LoopbackAddress(0, address);
  socklen_t size = sizeof(at);
  auto* const any = reinterpret_cast<sockaddr*>(&at);
  if (bind(fd, any, size) != 0 || getsockname(fd, any, &size) != 0) return 0;
  return ntohs(at.sin_port);
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_LOOPBACK_H_
