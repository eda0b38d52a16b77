// HTTP beside gRPC: GET /metrics (Prometheus text), /healthz (the process
// lives), /readyz (200 while serving, 503 otherwise).
//
// Bounded: two worker threads and an acceptor, all named "http", 16 waiting
// connections, 5 s a request, 8 KiB of headers, no keep-alive. Plain text, no
// authentication.
#ifndef ENCODERD_SERVER_OBSERVE_HTTP_H_
#define ENCODERD_SERVER_OBSERVE_HTTP_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace encoderd {

struct HttpSources {
  std::function<std::string()> metrics_text;  // called on an http thread
  std::function<bool()> ready;                // called on an http thread
};

class HttpServer {
 public:
  // address: host:port, port 0 for any. INVALID_ARGUMENT for a bad address;
  // UNAVAILABLE when it cannot be bound. The sources outlive the server.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const std::string& address, HttpSources sources);
  // Stops listening and joins the threads.
  virtual ~HttpServer() = default;

  virtual int port() const = 0;  // the one bound
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_OBSERVE_HTTP_H_
