// A port of loopback for a server that comes, goes and comes again, or for
// nobody at all: while this lives, the system gives the number to no other
// socket, of this test or of one that runs at the same time. Who asks for it by
// its number (and reuses addresses, as servers do) may listen on it.
#ifndef ENCODERD_TESTS_SUPPORT_HELD_PORT_H_
#define ENCODERD_TESTS_SUPPORT_HELD_PORT_H_

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace encoderd {

class HeldPort {
 public:
  HeldPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    setsockopt(fd_, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (bind(fd_, any, size) == 0 && getsockname(fd_, any, &size) == 0) {
      port_ = ntohs(address.sin_port);
    }
  }
  ~HeldPort() { close(fd_); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  int port() const { return port_; }  // 0: there was none

 private:
  const int fd_;
  int port_ = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_HELD_PORT_H_
