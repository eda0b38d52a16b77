// A connected socket, plain or over TLS, that never blocks. The process ignores
// SIGPIPE, which OpenSSL cannot keep from it. Not thread-safe.
#ifndef ENCODERD_SERVER_NET_STREAM_SOCKET_H_
#define ENCODERD_SERVER_NET_STREAM_SOCKET_H_

#include <openssl/ssl.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>

namespace encoderd {

class StreamSocket {
 public:
  static constexpr ssize_t kNotNow = -1;
  static constexpr ssize_t kOver = 0;  // ended, or broken

  // Owns fd, which is non-blocking. `context`: null for a plain one; the
  // handshake is made by the first Read or Write.
  StreamSocket(int fd, SSL_CTX* context);
  ~StreamSocket();
  StreamSocket(const StreamSocket&) = delete;
  StreamSocket& operator=(const StreamSocket&) = delete;

  // Bytes read or written, at least 1; or kNotNow: call again with the same
  // bytes once the socket is ready for events(); or kOver.
  ssize_t Read(char* buffer, size_t size);
  ssize_t Write(const char* bytes, size_t size);
  // Ends writing, and signals that to the other side.
  void EndWriting();

  int fd() const { return fd_; }
  // What to poll for after kNotNow.
  short events() const { return events_; }

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  // The result of an SSL_read or SSL_write.
  template <typename Operation>
  ssize_t Outcome(const Operation& operation);

  const int fd_;
  const bool tls_;
  const std::unique_ptr<SSL, Free> ssl_;  // null: plain, or no memory
  short events_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_NET_STREAM_SOCKET_H_
