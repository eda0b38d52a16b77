// The socket of a service manager (systemd's NOTIFY_SOCKET), bound until the
// end of the test. Not thread-safe.
#ifndef ENCODERD_TESTS_SUPPORT_NOTIFY_SOCKET_H_
#define ENCODERD_TESTS_SUPPORT_NOTIFY_SOCKET_H_

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/support/patience.h"

namespace encoderd {

class NotifySocket {
 public:
  // name: a path, or an abstract name that begins with '@'.
  explicit NotifySocket(const std::string& name)
      : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un at = {};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, name.data(), name.size());
    if (name[0] == '@') at.sun_path[0] = '\0';
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&at),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                          name.size())),
              0)
        << name;
  }
  ~NotifySocket() { close(fd_); }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  // The next datagram; "" when none came in time.
  std::string Next(absl::Duration patience = kPatience) {
    pollfd ready = {fd_, POLLIN, 0};
    if (poll(&ready, 1,
             static_cast<int>(absl::ToInt64Milliseconds(patience))) != 1) {
      return "";
    }
    char text[4096];
    const ssize_t size = recv(fd_, text, sizeof(text), 0);
    return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
  }

 private:
  const int fd_;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_NOTIFY_SOCKET_H_
