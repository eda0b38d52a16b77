#include "server/rpc/acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "absl/time/clock.h"

namespace encoderd {
namespace {

constexpr int kEvents = 64;
// How long to leave new connections waiting when descriptors have run out.
constexpr absl::Duration kBreather = absl::Milliseconds(20);

// No more of what the peer sends wakes whoever waits for it.
void StopReadable(int fd) {
  const int never = std::numeric_limits<int>::max();
  setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &never, sizeof(never));
}

// Closing a socket with unread bytes resets the connection, and the peer may
// then lose what we said last.
void DiscardUnread(int fd) {
  char bytes[4096];
  while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
  }
}

}  // namespace

Acceptor::Acceptor(
    int listener, int max_connections,
    std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> sink)
    : listener_(listener),
      max_connections_(max_connections),
      sink_(std::move(sink)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC)) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = wake_;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
  event.events = 0;
  event.data.fd = listener_;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &event);
}

Acceptor::~Acceptor() {
  stop_ = true;
  if (thread_.joinable()) {
    Wake();
    thread_.join();
  }
  absl::MutexLock lock(&mu_);
  for (int duplicate : open_) close(duplicate);
  if (!listener_closed_) close(listener_);
  close(wake_);
  close(epoll_);
}

void Acceptor::Start() {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "accept");
    Run();
  });
}

int64_t Acceptor::connections() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int64_t>(open_.size());
}

void Acceptor::WatchListener(bool on) {
  if (on == listening_) return;
  listening_ = on;
  epoll_event event = {};
  if (on) event.events = EPOLLIN;
  event.data.fd = listener_;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, listener_, &event);
}

void Acceptor::Run() {
  epoll_event events[kEvents];
  while (!stop_) {
    if (stop_reading_) {
      StopAccepting();
    } else {
      WatchListener(connections() < max_connections_);
    }
    const int count = epoll_wait(epoll_, events, kEvents, TimeLeftMs());
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == wake_) {
        uint64_t taken = 0;
        [[maybe_unused]] const ssize_t size =
            read(wake_, &taken, sizeof(taken));
      } else if (fd == listener_) {
        AcceptAll();
      } else {
        Ended(fd);
      }
    }
    if (TimeLeftMs() == 0) CloseAll();
  }
}

void Acceptor::AcceptAll() {
  while (connections() < max_connections_) {
    const int fd =
        accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      // Out of descriptors or memory: the listener would wake us at once.
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        absl::SleepFor(kBreather);
      }
      return;
    }
    const int duplicate = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (duplicate < 0) {
      close(fd);
      absl::SleepFor(kBreather);
      return;
    }
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    {
      absl::MutexLock lock(&mu_);
      open_.insert(duplicate);
    }
    // EPOLLHUP always comes: once both sides are closed, as gRPC does when a
    // connection ends for whatever reason.
    epoll_event event = {};
    event.data.fd = duplicate;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, duplicate, &event);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
        parameters;
    parameters.listener_fd = -1;
    parameters.fd = fd;
    sink_->HandleNewConnection(&parameters);
  }
}

void Acceptor::Ended(int duplicate) {
  absl::MutexLock lock(&mu_);
  if (open_.erase(duplicate) == 0) return;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, duplicate, nullptr);
  DiscardUnread(duplicate);
  close(duplicate);
}

void Acceptor::StopReading() {
  stop_reading_ = true;
  Wake();
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&listener_closed_));
}

void Acceptor::StopAccepting() {
  {
    absl::MutexLock lock(&mu_);
    if (listener_closed_) return;
  }
  AcceptAll();
  absl::MutexLock lock(&mu_);
  close(listener_);  // leaves epoll_, too
  for (int duplicate : open_) StopReadable(duplicate);
  listener_closed_ = true;
}

void Acceptor::CloseAllAfter(absl::Duration patience) {
  {
    absl::MutexLock lock(&mu_);
    close_all_ = absl::Now() + patience;
  }
  Wake();
}

void Acceptor::CloseAll() {
  absl::MutexLock lock(&mu_);
  for (int duplicate : open_) shutdown(duplicate, SHUT_RDWR);
  close_all_ = absl::InfiniteFuture();
}

// For epoll_wait: -1 while nothing is to be closed.
int Acceptor::TimeLeftMs() const {
  absl::MutexLock lock(&mu_);
  if (close_all_ == absl::InfiniteFuture()) return -1;
  const absl::Duration left =
      std::max(close_all_ - absl::Now(), absl::ZeroDuration());
  return static_cast<int>(
      absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
}

void Acceptor::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t size = write(wake_, &one, sizeof(one));
}

}  // namespace encoderd
