// HTTP in addition to gRPC: GET /metrics (Prometheus text), /healthz (the
// process lives), /readyz (200 while serving, 503 otherwise).
//
// A single thread named "http": three fixed answers need no web server, and
// this one stops at once. Bounded: 32 connections, 4 KiB per request, 5 s per
// connection, one request each. If all connections are in use, the one that has
// waited longest is closed: silent callers block another only if 32 of them
// arrive between its connection and its request. Callers who wait for /metrics
// share one page, made after all others have their answers. If as many callers
// come at once as there are connections, or descriptors run out, the page may
// be up to a second old; any number of scrapes then delays a probe by about one
// page. Plain text, or TLS; no authentication.
#ifndef ENCODERD_SERVER_OBSERVE_HTTP_H_
#define ENCODERD_SERVER_OBSERVE_HTTP_H_

#include <openssl/ssl.h>
#include <poll.h>

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/net/listen_socket.h"

namespace encoderd {

struct HttpSources {
  std::function<std::string()> metrics_text;  // called on the http thread
  std::function<bool()> ready;                // called on the http thread
  // Called per new connection, on the http thread. Null: plain text.
  std::function<std::shared_ptr<SSL_CTX>()> tls;
};

struct HttpBounds {
  int connections = 32;                        // at least 1
  absl::Duration patience = absl::Seconds(5);  // with one connection
  // Of a shared page, in a flood or without descriptors.
  absl::Duration max_page_age = absl::Seconds(1);
};

class HttpConnection;

class HttpServer {
 public:
  // Errors: those of Listen; RESOURCE_EXHAUSTED if descriptors have run out.
  // Throws what StartThread throws. What the sources use outlives the
  // server.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const HostPort& address, HttpSources sources,
      const HttpBounds& bounds = {});
  // Closes everything and joins the thread.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }  // the bound port

 private:
  HttpServer(const ListenSocket& socket, HttpSources sources,
             const HttpBounds& bounds);
  void Run();
  void Serve(const std::vector<pollfd>& fds);
  bool AcceptAll();
  bool MakeRoom();
  void AnswerScrapes(bool many);
  std::shared_ptr<const std::string> Page();

  const int listener_;
  const int stop_;  // -1: no descriptor was available
  const int port_;
  const HttpSources sources_;
  const HttpBounds bounds_;
  std::list<HttpConnection>
      connections_;  // used by the thread only, oldest first
  // The last answer with metrics, while many ask for it; also the thread's.
  std::shared_ptr<const std::string> page_;
  absl::Time page_made_;
  std::thread thread_;
};

// The complete answer to the head of a request (up to the empty line). Pure.
std::string AnswerHttp(absl::string_view head, const HttpSources& sources);
// Whether that answer, if memory suffices, is the metrics. Pure.
bool AsksForMetricsHttp(absl::string_view head);
// The answer to GET /metrics; to HEAD it ends before the body.
std::string MetricsAnswerHttp(const HttpSources& sources);
// The answer to a head of more than `limit` bytes.
std::string HeadTooLargeHttp(size_t limit);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_OBSERVE_HTTP_H_
