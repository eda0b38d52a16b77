// A TCP proxy on loopback whose connections can be frozen: they stay open, but
// nothing passes any more, as when the machine behind them has gone. New
// connections work.
#ifndef ENCODERD_TESTS_SUPPORT_FREEZING_PROXY_H_
#define ENCODERD_TESTS_SUPPORT_FREEZING_PROXY_H_

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace encoderd {

class FreezingProxy {
 public:
  // server_port: of a server on 127.0.0.1.
  explicit FreezingProxy(int server_port)
      : server_port_(server_port), listener_(NewSocket()) {
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof(address);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_, any, size) == 0 && listen(listener_, 16) == 0 &&
        getsockname(listener_, any, &size) == 0) {
      port_ = ntohs(address.sin_port);
    }
    thread_ = std::thread([this] { Run(); });
  }
  ~FreezingProxy() {
    stop_ = true;
    thread_.join();
    absl::MutexLock lock(&mu_);
    for (const Connection& connection : connections_) {
      close(connection.ends[0]);
      close(connection.ends[1]);
    }
    close(listener_);
  }
  FreezingProxy(const FreezingProxy&) = delete;
  FreezingProxy& operator=(const FreezingProxy&) = delete;

  int port() const { return port_; }  // 0: there was none

  // The connections that there are now.
  void Freeze() {
    absl::MutexLock lock(&mu_);
    for (Connection& connection : connections_) connection.passes = false;
  }
  int connections() const {  // that were opened
    absl::MutexLock lock(&mu_);
    return static_cast<int>(connections_.size());
  }

 private:
  struct Connection {
    int ends[2];  // the client's, the server's
    bool passes = true;
  };

  static int NewSocket() {
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  }
  static sockaddr_in Loopback(int port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    return address;
  }

  void Run() {
    while (!stop_) {
      std::vector<pollfd> ready = {{listener_, POLLIN, 0}};
      {
        absl::MutexLock lock(&mu_);
        for (const Connection& connection : connections_) {
          if (!connection.passes) continue;
          for (const int end : connection.ends)
            ready.push_back({end, POLLIN, 0});
        }
      }
      poll(ready.data(), ready.size(), 20);
      absl::MutexLock lock(&mu_);
      if (ready[0].revents != 0) Accept();
      for (Connection& connection : connections_) {
        if (connection.passes && !Pass(connection)) {
          connection.passes = false;
          shutdown(connection.ends[0], SHUT_RDWR);
          shutdown(connection.ends[1], SHUT_RDWR);
        }
      }
    }
  }

  void Accept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const sockaddr_in server = Loopback(server_port_);
    const Connection connection = {
        {accept(listener_, nullptr, nullptr), NewSocket()}};
    connect(connection.ends[1], reinterpret_cast<const sockaddr*>(&server),
            sizeof(server));
    connections_.push_back(connection);
  }

  // What has arrived, to the other end. False: an end has closed.
  static bool Pass(const Connection& connection) {
    std::string bytes(1 << 16, '\0');
    for (int from = 0; from < 2; ++from) {
      const ssize_t size =
          recv(connection.ends[from], bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (size < 0 && errno == EAGAIN) continue;
      if (size <= 0) return false;
      if (send(connection.ends[1 - from], bytes.data(), size, MSG_NOSIGNAL) !=
          size)
        return false;
    }
    return true;
  }

  const int server_port_;
  const int listener_;
  int port_ = 0;
  std::atomic<bool> stop_{false};
  mutable absl::Mutex mu_;
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_FREEZING_PROXY_H_
