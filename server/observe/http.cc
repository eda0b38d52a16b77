#include "server/observe/http.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/observe/listen_socket.h"

namespace encoderd {
namespace {

constexpr size_t kMaxConnections = 32;
constexpr size_t kMaxHead = 4096;  // bytes
constexpr absl::Duration kPatience = absl::Seconds(5);
constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kPrometheus[] = "text/plain; version=0.0.4; charset=utf-8";

std::string Response(absl::string_view status, absl::string_view type,
                     absl::string_view body, bool head_only) {
  return absl::StrCat(
      "HTTP/1.1 ", status, "\r\nContent-Type: ", type,
      "\r\nContent-Length: ", body.size(),
      "\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
      head_only ? "" : body);
}

// One caller: the head is read, then the answer is written, then it closes.
struct Connection {
  int fd = -1;
  absl::Time until;
  std::string head;
  std::string answer;  // not empty: writing
  size_t written = 0;

  // False: done with, close it.
  bool Read(const HttpSources& sources) {
    char buffer[1024];
    const ssize_t size = recv(fd, buffer, sizeof(buffer), 0);
    if (size <= 0) return size < 0 && (errno == EAGAIN || errno == EINTR);
    head.append(buffer, static_cast<size_t>(size));
    const size_t end = head.find("\r\n\r\n");
    if (end != std::string::npos) {
      answer = AnswerHttp(absl::string_view(head).substr(0, end), sources);
    } else if (head.size() > kMaxHead) {
      answer = Response("431 Request Header Fields Too Large", kText,
                        "at most 4096 bytes of request\n", false);
    }
    return answer.empty() || Write();
  }
  bool Write() {
    const ssize_t size = send(fd, answer.data() + written,
                              answer.size() - written, MSG_NOSIGNAL);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    written += static_cast<size_t>(size);
    return written < answer.size();
  }
};

class PollServer final : public HttpServer {
 public:
  PollServer(int listener, int port, HttpSources sources)
      : listener_(listener),
        stop_(eventfd(0, EFD_CLOEXEC)),
        port_(port),
        sources_(std::move(sources)),
        thread_([this] { Run(); }) {}
  ~PollServer() override {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t size = write(stop_, &one, sizeof(one));
    thread_.join();
    for (const Connection& connection : connections_) close(connection.fd);
    close(listener_);
    close(stop_);
  }

  int port() const override { return port_; }

 private:
  void Run() {
    pthread_setname_np(pthread_self(), "http");
    std::vector<pollfd> fds;
    for (;;) {
      const bool room = connections_.size() < kMaxConnections;
      fds = {{stop_, POLLIN, 0},
             {listener_, static_cast<short>(room ? POLLIN : 0), 0}};
      for (const Connection& c : connections_) {
        fds.push_back(
            {c.fd, static_cast<short>(c.answer.empty() ? POLLIN : POLLOUT), 0});
      }
      const int timeout_ms = connections_.empty() ? -1 : 1000;
      if (poll(fds.data(), fds.size(), timeout_ms) < 0) continue;
      if (fds[0].revents != 0) return;
      Serve(fds);
      if (fds[1].revents != 0) Accept();
    }
  }

  // fds[2 ...] are those of connections_, in order.
  void Serve(const std::vector<pollfd>& fds) {
    const absl::Time now = absl::Now();
    auto connection = connections_.begin();
    for (size_t i = 2; i < fds.size(); ++i) {
      bool keep = now < connection->until;
      if (keep && fds[i].revents != 0) {
        keep = connection->answer.empty() ? connection->Read(sources_)
                                          : connection->Write();
      }
      if (keep) {
        ++connection;
      } else {
        close(connection->fd);
        connection = connections_.erase(connection);
      }
    }
  }

  void Accept() {
    const int fd =
        accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      // Out of descriptors: the caller waits in the backlog, we do not spin.
      if (errno == EMFILE || errno == ENFILE) {
        absl::SleepFor(absl::Milliseconds(50));
      }
      return;
    }
    Connection connection;
    connection.fd = fd;
    connection.until = absl::Now() + kPatience;
    connections_.push_back(std::move(connection));
  }

  const int listener_;
  const int stop_;
  const int port_;
  const HttpSources sources_;
  std::list<Connection> connections_;  // the thread's own
  std::thread thread_;
};

}  // namespace

std::string AnswerHttp(absl::string_view head, const HttpSources& sources) {
  const absl::string_view line = head.substr(0, head.find("\r\n"));
  const size_t first = line.find(' ');
  const size_t second = line.rfind(' ');
  if (first == absl::string_view::npos || second <= first + 1 ||
      !absl::StartsWith(line.substr(second + 1), "HTTP/1.")) {
    return Response("400 Bad Request", kText, "this is not HTTP/1.1\n", false);
  }
  const absl::string_view method = line.substr(0, first);
  absl::string_view path = line.substr(first + 1, second - first - 1);
  path = path.substr(0, path.find('?'));
  const bool head_only = method == "HEAD";
  if (method != "GET" && !head_only) {
    return Response("405 Method Not Allowed", kText,
                    "only GET is answered here\n", false);
  }
  if (path == "/metrics") {
    return Response("200 OK", kPrometheus, sources.metrics_text(), head_only);
  }
  if (path == "/healthz") {
    return Response("200 OK", kText, "alive\n", head_only);
  }
  if (path == "/readyz") {
    return sources.ready() ? Response("200 OK", kText, "ready\n", head_only)
                           : Response("503 Service Unavailable", kText,
                                      "not ready\n", head_only);
  }
  return Response("404 Not Found", kText,
                  "only /metrics, /healthz and /readyz are here\n", head_only);
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const std::string& host, int port, HttpSources sources) {
  const auto socket = Listen(host, port);
  if (!socket.ok()) return socket.status();
  return std::make_unique<PollServer>(socket->fd, socket->port,
                                      std::move(sources));
}

}  // namespace encoderd
