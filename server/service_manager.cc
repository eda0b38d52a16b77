#include "server/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace encoderd {
namespace {

absl::Status CannotTell(const std::string& socket, const char* why) {
  return absl::UnavailableError(
      absl::StrCat("NOTIFY_SOCKET=", socket, ": ", why));
}

}  // namespace

std::string ServiceManagerSocket() {
  const char* const socket = std::getenv("NOTIFY_SOCKET");
  return socket == nullptr ? "" : socket;
}

absl::Status TellServiceManager(const std::string& socket,
                                absl::string_view lines) {
  if (socket.empty()) return absl::OkStatus();
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  // A path needs the zero byte at its end, an abstract name has none.
  if (socket.size() >= sizeof(to.sun_path)) {
    return CannotTell(socket, "the name is too long");
  }
  std::memcpy(to.sun_path, socket.data(), socket.size());
  if (socket[0] == '@') to.sun_path[0] = '\0';
  const socklen_t size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return CannotTell(socket, std::strerror(errno));
  const ssize_t sent =
      sendto(fd, lines.data(), lines.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
             reinterpret_cast<const sockaddr*>(&to), size);
  const int error = errno;
  close(fd);
  if (sent < 0) return CannotTell(socket, std::strerror(error));
  return absl::OkStatus();
}

std::string StoppingLines(absl::Duration patience) {
  return absl::StrCat(
      "STOPPING=1\nSTATUS=answering what was accepted\n",
      "EXTEND_TIMEOUT_USEC=", absl::ToInt64Microseconds(patience), "\n");
}

}  // namespace encoderd
