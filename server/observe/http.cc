#include "server/observe/http.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/start_thread.h"
#include "server/base/steady_time.h"
#include "server/observe/http_connection.h"

namespace encoderd {
namespace {

// For descriptors or memory that have run out.
constexpr absl::Duration kPauseAfterError = absl::Milliseconds(50);

}  // namespace

HttpServer::HttpServer(const ListenSocket& socket, HttpSources sources,
                       const HttpBounds& bounds)
    : listener_(socket.fd),
      stop_(eventfd(0, EFD_CLOEXEC)),
      port_(socket.port),
      sources_(std::move(sources)),
      bounds_(bounds) {}

HttpServer::~HttpServer() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t size = write(stop_, &one, sizeof(one));
    thread_.join();
  }
  close(listener_);
  if (stop_ >= 0) close(stop_);
}

void HttpServer::Run() {
  std::vector<pollfd> fds;
  for (;;) {
    fds = {{stop_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const HttpConnection& connection : connections_) {
      fds.push_back(connection.poll_for());
    }
    const int timeout_ms = connections_.empty() ? -1 : 1000;
    if (poll(fds.data(), fds.size(), timeout_ms) < 0) continue;
    if (fds[0].revents != 0) return;
    Serve(fds);
    const bool more = fds[1].revents != 0 && AcceptAll();
    AnswerScrapes(/*many=*/more);
  }
}

// fds[2 ...] are those of connections_, in order.
void HttpServer::Serve(const std::vector<pollfd>& fds) {
  const absl::Time now = SteadyNow();
  auto connection = connections_.begin();
  for (size_t i = 2; i < fds.size(); ++i) {
    const bool keep = now < connection->until &&
                      (fds[i].revents == 0 || connection->Advance(sources_));
    connection = keep ? std::next(connection) : connections_.erase(connection);
  }
}

// True: more callers may wait.
bool HttpServer::AcceptAll() {
  for (int i = 0; i < bounds_.connections; ++i) {
    const int fd =
        accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) {
        return false;
      }
      // Out of descriptors: one of ours makes room, or the caller waits in
      // the backlog; we do not spin.
      if (!MakeRoom()) absl::SleepFor(kPauseAfterError);
      return true;
    }
    if (connections_.size() >= static_cast<size_t>(bounds_.connections)) {
      MakeRoom();
    }
    // Most have sent their request already.
    const auto context = sources_.tls == nullptr ? nullptr : sources_.tls();
    connections_.emplace_back(fd, context.get(),
                              SteadyNow() + bounds_.patience);
    if (!connections_.back().Advance(sources_)) connections_.pop_back();
  }
  return true;
}

// Closes the connection that has been silent for longest, or else the oldest
// whose caller does not read; a page is made for it only where all wait for
// one. False: none.
bool HttpServer::MakeRoom() {
  if (connections_.empty()) return false;
  for (auto oldest = connections_.begin(); oldest != connections_.end();
       ++oldest) {
    if (oldest->answer_due()) continue;
    oldest->Advance(sources_);  // its request may just have come
    if (oldest->waits_for_metrics()) continue;
    connections_.erase(oldest);
    return true;
  }
  const auto oldest = std::find_if(connections_.begin(), connections_.end(),
                                   [](const HttpConnection& connection) {
                                     return !connection.waits_for_metrics();
                                   });
  if (oldest != connections_.end()) {
    connections_.erase(oldest);
    return true;
  }
  const size_t all = connections_.size();
  AnswerScrapes(/*many=*/true);
  if (connections_.size() == all) connections_.pop_front();
  return true;
}

// One page for all who wait for it. It is later than their requests, unless
// `many` callers wait.
void HttpServer::AnswerScrapes(bool many) {
  if (!many) page_ = nullptr;
  for (auto connection = connections_.begin();
       connection != connections_.end();) {
    const bool keep =
        !connection->waits_for_metrics() || connection->AnswerScrape(Page());
    connection = keep ? std::next(connection) : connections_.erase(connection);
  }
  if (!many) page_ = nullptr;
}

std::shared_ptr<const std::string> HttpServer::Page() {
  if (page_ == nullptr || SteadyNow() - page_made_ > bounds_.max_page_age) {
    page_made_ = SteadyNow();
    page_ = std::make_shared<const std::string>(MetricsAnswerHttp(sources_));
  }
  return page_;
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const HostPort& address, HttpSources sources, const HttpBounds& bounds) {
  const auto socket = Listen(address);
  if (!socket.ok()) return socket.status();
  auto server =
      absl::WrapUnique(new HttpServer(*socket, std::move(sources), bounds));
  if (server->stop_ < 0) {
    return absl::ErrnoToStatus(
        errno,
        absl::StrCat("cannot serve HTTP on ", address.host, ":", socket->port));
  }
  server->thread_ = StartThread("http", [http = server.get()] { http->Run(); });
  return server;
}

}  // namespace encoderd
