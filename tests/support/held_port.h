// A port of loopback for a server that comes, goes and comes again, or for
// nobody at all: while this lives, the system gives the number to no other
// socket, of this test or of one that runs at the same time. Who asks for it by
// its number (and reuses addresses, as servers do) may listen on it.
#ifndef ENCODERD_TESTS_SUPPORT_HELD_PORT_H_
#define ENCODERD_TESTS_SUPPORT_HELD_PORT_H_

#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/loopback.h"

namespace encoderd {

class HeldPort {
 public:
  HeldPort() : fd_(NewTcpSocket()) {
    const int on = 1;
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    setsockopt(fd_, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    port_ = BindLoopback(fd_);
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
