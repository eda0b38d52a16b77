#include "server/rpc/acceptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/start_thread.h"
#include "server/base/steady_time.h"

namespace encoderd {
namespace {

constexpr int kEvents = 64;
constexpr absl::Duration kPoll = absl::Milliseconds(1);
// A peer that sends a call does not pause for this long within it.
constexpr absl::Duration kQuiet = absl::Milliseconds(10);
// How long to wait for each connection to be quiet.
constexpr absl::Duration kBetweenCalls = absl::Milliseconds(200);
// How long to leave new connections waiting when descriptors have run out.
constexpr absl::Duration kPauseAfterError = absl::Milliseconds(20);

// The bytes that identify it; empty if there are none.
std::string AddressOf(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &peer, sizeof(v4));
    return std::string(reinterpret_cast<const char*>(&v4.sin_addr), 4);
  }
  if (peer.ss_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &peer, sizeof(v6));
    const auto* const bytes = reinterpret_cast<const char*>(&v6.sin6_addr);
    return IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) ? std::string(bytes + 12, 4)
                                               : std::string(bytes, 8);
  }
  return "";
}

// The same in words, for the log: "192.0.2.7", "2001:db8::/64".
std::string Words(const std::string& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.size() == 4) {
    inet_ntop(AF_INET, address.data(), text, sizeof(text));
    return text;
  }
  in6_addr v6 = {};
  std::memcpy(&v6, address.data(), std::min(address.size(), sizeof(v6)));
  inet_ntop(AF_INET6, &v6, text, sizeof(text));
  return absl::StrCat(text, "/64");
}

// Data from the peer no longer wakes the thread that waits for it.
void StopReadable(int fd) {
  const int never = std::numeric_limits<int>::max();
  setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &never, sizeof(never));
}

// All that the peer sent was read, and it has sent nothing for kQuiet.
bool IsQuiet(int fd) {
  int unread = 0;
  tcp_info info = {};
  socklen_t size = sizeof(info);
  return ioctl(fd, FIONREAD, &unread) == 0 && unread == 0 &&
         getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         absl::Milliseconds(info.tcpi_last_data_recv) >= kQuiet;
}

// Closing a socket with unread bytes resets the connection, and the peer may
// then lose the last answer.
void DiscardUnread(int fd) {
  char bytes[4096];
  while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
  }
}

}  // namespace

Acceptor::Acceptor(
    int listener, int max_connections, int max_per_address,
    std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> sink)
    : listener_(listener),
      max_connections_(max_connections),
      max_per_address_(max_per_address),
      sink_(std::move(sink)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC)) {
  if (epoll_ < 0 || wake_ < 0 || !Watch(wake_, EPOLLIN) ||
      !Watch(listener_, 0)) {
    setup_error_ = errno;
  }
}

Acceptor::~Acceptor() {
  stop_ = true;
  if (thread_.joinable()) {
    Wake();
    thread_.join();
  }
  absl::MutexLock lock(&mu_);
  for (const auto& [duplicate, address] : open_) close(duplicate);
  if (!listener_closed_) close(listener_);
  if (wake_ >= 0) close(wake_);
  if (epoll_ >= 0) close(epoll_);
}

absl::Status Acceptor::Start() {
  if (setup_error_ != 0) {
    return absl::ErrnoToStatus(setup_error_, "cannot wait for connections");
  }
  thread_ = StartThread("accept", [this] { Run(); });
  return absl::OkStatus();
}

bool Acceptor::Watch(int fd, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = fd;
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
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
        // The rest at the next turn: a flood must not keep this thread from
        // connections that end, nor from stopping.
        AcceptSome(kEvents);
      } else {
        Ended(fd);
      }
    }
    if (TimeLeftMs() == 0) CloseAll();
  }
}

void Acceptor::AcceptSome(int most) {
  while (most-- > 0 && connections() < max_connections_ && AcceptOne()) {
  }
}

bool Acceptor::AcceptOne() {
  sockaddr_storage peer = {};
  socklen_t size = sizeof(peer);
  const int fd = accept4(listener_, reinterpret_cast<sockaddr*>(&peer), &size,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    if (errno == EAGAIN) return false;
    if (errno == EINTR || errno == ECONNABORTED) return true;
    // Out of descriptors or memory: the listener would wake this thread at
    // once.
    absl::SleepFor(kPauseAfterError);
    return false;
  }
  const int duplicate = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) {
    close(fd);
    absl::SleepFor(kPauseAfterError);
    return false;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const std::string address = AddressOf(peer);
  const std::optional<Limit> limit = Register(duplicate, address);
  if (limit.has_value()) {
    Refused(address, *limit);  // before its caller can know
    close(duplicate);
    close(fd);
    return true;
  }
  // EPOLLHUP always comes: once both sides are closed, as gRPC does when a
  // connection ends for whatever reason.
  if (!Watch(duplicate, 0)) {  // its end would never be seen
    Ended(duplicate);
    close(fd);
    absl::SleepFor(kPauseAfterError);
    return false;
  }
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
      parameters;
  parameters.listener_fd = -1;
  parameters.fd = fd;
  sink_->HandleNewConnection(&parameters);
  return true;
}

std::optional<Acceptor::Limit> Acceptor::LimitReached(int open) const {
  if (open >= max_per_address_) {
    return Limit{max_per_address_,
                 "the address has as many connections open as "
                 "--max_connections_per_address allows; share a channel, or "
                 "raise the flag if several callers are behind one proxy"};
  }
  const int reserve = max_connections_ / kReserveShare;
  const int left = max_connections_ - static_cast<int>(open_.size());
  if (open == 0 || left > reserve) return std::nullopt;
  return Limit{max_connections_,
               "almost --max_connections are open, and the rest is for "
               "addresses that have none; share a channel, or raise the flag"};
}

std::optional<Acceptor::Limit> Acceptor::Register(int duplicate,
                                                  const std::string& address) {
  absl::MutexLock lock(&mu_);
  int& count = by_address_[address];
  const std::optional<Limit> limit = LimitReached(count);
  if (limit.has_value()) return limit;
  ++count;
  open_[duplicate] = address;
  return std::nullopt;
}

void Acceptor::Refused(const std::string& address, const Limit& limit) {
  ++refused_;
  if (!refusals_logged_.Allows(SteadyNow())) return;
  Log(LogLevel::kWarning, "connection_refused",
      LogFields()
          .Add("address", Words(address))
          .Add("limit", limit.value)
          .Add("refused_so_far", refused_.load())
          .Add("message", limit.message));
}

void Acceptor::Ended(int duplicate) {
  absl::MutexLock lock(&mu_);
  const auto open = open_.find(duplicate);
  if (open == open_.end()) return;
  const auto count = by_address_.find(open->second);
  if (--count->second == 0) by_address_.erase(count);
  open_.erase(open);
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
  AcceptSome(SOMAXCONN);  // all that wait now
  close(listener_);       // leaves epoll_, too
  StopReadingBetweenCalls();
  absl::MutexLock lock(&mu_);
  listener_closed_ = true;
}

// A partly read call would be canceled: reading stops on each connection when
// it is quiet, or when the time is up.
void Acceptor::StopReadingBetweenCalls() {
  std::vector<int> busy;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [duplicate, address] : open_) busy.push_back(duplicate);
  }
  const absl::Time until = SteadyNow() + kBetweenCalls;
  while (!busy.empty()) {
    const bool last = SteadyNow() >= until;
    std::vector<int> left;
    for (const int duplicate : busy) {
      if (last || IsQuiet(duplicate)) {
        StopReadable(duplicate);
      } else {
        left.push_back(duplicate);
      }
    }
    busy = std::move(left);
    if (!busy.empty()) absl::SleepFor(kPoll);
  }
}

void Acceptor::CloseAllAfter(absl::Duration patience) {
  {
    absl::MutexLock lock(&mu_);
    close_all_ = SteadyNow() + patience;
  }
  Wake();
}

void Acceptor::CloseAll() {
  absl::MutexLock lock(&mu_);
  for (const auto& [duplicate, address] : open_) {
    shutdown(duplicate, SHUT_RDWR);
  }
  close_all_ = absl::InfiniteFuture();
}

// For epoll_wait: -1 while nothing is to be closed.
int Acceptor::TimeLeftMs() const {
  absl::MutexLock lock(&mu_);
  if (close_all_ == absl::InfiniteFuture()) return -1;
  const absl::Duration left =
      std::max(close_all_ - SteadyNow(), absl::ZeroDuration());
  return static_cast<int>(
      absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
}

void Acceptor::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t size = write(wake_, &one, sizeof(one));
}

}  // namespace encoderd
