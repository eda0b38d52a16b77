#include "server/net/stream_socket.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace encoderd {
namespace {

bool NotNow() { return errno == EAGAIN || errno == EINTR; }

SSL* NewSsl(int fd, SSL_CTX* context) {
  SSL* const ssl = SSL_new(context);
  if (ssl == nullptr) return nullptr;
  SSL_set_fd(ssl, fd);
  SSL_set_accept_state(ssl);
  // A repeated write may find its bytes elsewhere.
  SSL_set_mode(
      ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return ssl;
}

}  // namespace

StreamSocket::StreamSocket(int fd, SSL_CTX* context)
    : fd_(fd),
      tls_(context != nullptr),
      ssl_(tls_ ? NewSsl(fd, context) : nullptr),
      events_(POLLIN) {}

StreamSocket::~StreamSocket() { close(fd_); }

ssize_t StreamSocket::Read(char* buffer, size_t size) {
  events_ = POLLIN;
  if (tls_) {
    return Outcome([&] {
      return SSL_read(ssl_.get(), buffer,
                      static_cast<int>(std::min<size_t>(size, INT_MAX)));
    });
  }
  const ssize_t count = recv(fd_, buffer, size, 0);
  return count < 0 && NotNow() ? kNotNow : std::max<ssize_t>(count, kOver);
}

ssize_t StreamSocket::Write(const char* bytes, size_t size) {
  events_ = POLLOUT;
  if (tls_) {
    return Outcome([&] {
      return SSL_write(ssl_.get(), bytes,
                       static_cast<int>(std::min<size_t>(size, INT_MAX)));
    });
  }
  const ssize_t count = send(fd_, bytes, size, MSG_NOSIGNAL);
  return count < 0 && NotNow() ? kNotNow : std::max<ssize_t>(count, kOver);
}

void StreamSocket::EndWriting() {
  if (ssl_ != nullptr) SSL_shutdown(ssl_.get());
  ERR_clear_error();
  shutdown(fd_, SHUT_WR);
}

template <typename Operation>
ssize_t StreamSocket::Outcome(const Operation& operation) {
  if (ssl_ == nullptr) return kOver;  // no memory for it
  ERR_clear_error();
  const int count = operation();
  if (count > 0) return count;
  switch (SSL_get_error(ssl_.get(), count)) {
    case SSL_ERROR_WANT_READ:
      events_ = POLLIN;
      return kNotNow;
    case SSL_ERROR_WANT_WRITE:
      events_ = POLLOUT;
      return kNotNow;
    default:
      ERR_clear_error();
      return kOver;
  }
}

}  // namespace encoderd
