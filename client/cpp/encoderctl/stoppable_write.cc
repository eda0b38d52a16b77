#include "client/cpp/encoderctl/stoppable_write.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/signals.h"

namespace encoderd::ctl {
namespace {

constexpr int kUnreadMs = 1000;  // so long without room, and nobody reads
constexpr int kAgainMs = 20;     // where there is some, but too little

}  // namespace

int ReopenTerminal(int descriptor) {
  if (isatty(descriptor) != 1) return descriptor;
  // O_NONBLOCK on `descriptor` itself would hold for whoever shares it.
  const int own = open(absl::StrCat("/proc/self/fd/", descriptor).c_str(),
                       O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  return own < 0 ? descriptor : own;
}

size_t WriteUntilStopped(int descriptor, absl::string_view bytes) {
  size_t done = 0;
  int unread_ms = 0;
  while (done < bytes.size()) {
    if (descriptor < 0) {  // poll would pass over it
      errno = EBADF;
      break;
    }
    pollfd room = {descriptor, POLLOUT, 0};
    const int ready = poll(&room, 1, kUnreadMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      unread_ms = kUnreadMs;
    } else {
      // So much does not block in a pipe that has room.
      const ssize_t wrote =
          write(descriptor, bytes.data() + done,
                std::min<size_t>(bytes.size() - done, PIPE_BUF));
      if (wrote > 0) {
        done += static_cast<size_t>(wrote);
        unread_ms = 0;
        continue;
      }
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote >= 0 || errno != EAGAIN) break;
      // Room for one byte, not for "\r\n"; or another writer took it.
      poll(nullptr, 0, kAgainMs);
      unread_ms += kAgainMs;
    }
    errno = EINTR;
    if (unread_ms >= kUnreadMs && StopOnSignal::Signal() != 0) break;
  }
  return done;
}

StoppableBuffer::int_type StoppableBuffer::overflow(int_type byte) {
  if (traits_type::eq_int_type(byte, traits_type::eof())) {
    return traits_type::not_eof(byte);
  }
  const char value = traits_type::to_char_type(byte);
  return xsputn(&value, 1) == 1 ? byte : traits_type::eof();
}

std::streamsize StoppableBuffer::xsputn(const char* bytes,
                                        std::streamsize count) {
  return static_cast<std::streamsize>(
      WriteUntilStopped(descriptor_, {bytes, static_cast<size_t>(count)}));
}

}  // namespace encoderd::ctl
