// A TCP proxy on loopback whose connections can be frozen: they stay open, but
// nothing passes any more, as when the machine behind them has gone. New
// connections work.
#ifndef ENCODERD_TESTS_SUPPORT_FREEZING_PROXY_H_
#define ENCODERD_TESTS_SUPPORT_FREEZING_PROXY_H_

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
#include "tests/support/loopback.h"

namespace encoderd {

class FreezingProxy {
 public:
  // server_port: of a server on 127.0.0.1.
  explicit FreezingProxy(int server_port)
      : server_port_(server_port), listener_(NewTcpSocket()) {
    const int port = BindLoopback(listener_);
    if (listen(listener_, 16) == 0) port_ = port;
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
    const Connection connection = {
        {accept(listener_, nullptr, nullptr), NewTcpSocket()}};
    ConnectLoopback(connection.ends[1], server_port_);
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
