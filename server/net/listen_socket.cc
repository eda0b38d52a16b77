#include "server/net/listen_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace encoderd {
namespace {

// A listening socket, or -1 and errno.
int Bind(const addrinfo& address) {
  const int fd =
      socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  // A restart must not wait for old connections; two servers still cannot
  // share.
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd, address.ai_addr, address.ai_addrlen) == 0 &&
      listen(fd, SOMAXCONN) == 0) {
    return fd;
  }
  const int reason = errno;
  close(fd);
  errno = reason;
  return -1;
}

// Of a bound socket; -1 and errno if the system does not tell.
int PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return -1;
  }
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

// What the system's message leaves open.
std::string Explain(int error, int port) {
  const std::string reason = std::strerror(error);
  switch (error) {
    case EADDRINUSE:
      return absl::StrCat(reason, "; ss -ltnp 'sport = :", port,
                          "' shows the process that uses it");
    case EADDRNOTAVAIL:
      return absl::StrCat(reason, "; this host has no such address");
    case EACCES:
      return absl::StrCat(
          reason, "; ports below 1024 need a privilege: choose another port");
    case EMFILE:
      return absl::StrCat(reason, "; raise the limit (ulimit -n)");
    default:
      return reason;
  }
}

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case EACCES:
      return absl::StatusCode::kFailedPrecondition;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

absl::StatusOr<ListenSocket> Listen(const HostPort& address) {
  const std::string& host = address.host;
  const int port = address.port;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int resolved =
      getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  ListenSocket socket;
  std::string reason;
  auto code = absl::StatusCode::kFailedPrecondition;
  const auto explain = [&] {
    code = CodeOf(errno);
    reason = Explain(errno, port);
  };
  const auto failed = [&] {
    return absl::Status(
        code, absl::StrCat("cannot listen on ", host, ":", port, ": ", reason));
  };
  if (resolved == 0) {
    for (addrinfo* at = found; at != nullptr && socket.fd < 0;
         at = at->ai_next) {
      socket.fd = Bind(*at);
      if (socket.fd < 0) explain();
    }
    freeaddrinfo(found);
  } else {
    if (resolved == EAI_AGAIN) code = absl::StatusCode::kUnavailable;
    reason = gai_strerror(resolved);
  }
  if (socket.fd < 0) return failed();
  socket.port = PortOf(socket.fd);
  if (socket.port < 0) {
    explain();
    close(socket.fd);
    return failed();
  }
  return socket;
}

}  // namespace encoderd
