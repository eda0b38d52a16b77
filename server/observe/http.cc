#include "server/observe/http.h"

#include <pthread.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "civetweb.h"

namespace encoderd {
namespace {

constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kPrometheus[] = "text/plain; version=0.0.4; charset=utf-8";

class CivetServer final : public HttpServer {
 public:
  explicit CivetServer(HttpSources sources) : sources_(std::move(sources)) {}
  ~CivetServer() override {
    if (context_ != nullptr) mg_stop(context_);
  }

  absl::Status Listen(const std::string& address) {
    mg_init_library(0);
    const char* options[] = {"listening_ports",
                             address.c_str(),
                             "num_threads",
                             "2",
                             "connection_queue",
                             "16",
                             "request_timeout_ms",
                             "5000",
                             "max_request_size",
                             "8192",
                             "enable_keep_alive",
                             "no",
                             "enable_directory_listing",
                             "no",
                             nullptr};
    mg_callbacks callbacks;
    std::memset(&callbacks, 0, sizeof(callbacks));
    callbacks.begin_request = &CivetServer::BeginRequest;
    callbacks.init_thread = &CivetServer::NameThread;
    callbacks.log_message = [](const mg_connection*, const char*) { return 1; };
    context_ = mg_start(&callbacks, this, options);
    if (context_ == nullptr) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", address,
                                                 " (in use, or no such "
                                                 "address)"));
    }
    mg_server_port ports[4];
    std::memset(ports, 0, sizeof(ports));
    if (mg_get_server_ports(context_, 4, ports) > 0) port_ = ports[0].port;
    return absl::OkStatus();
  }

  int port() const override { return port_; }

 private:
  static void* NameThread(const mg_context*, int) {
    pthread_setname_np(pthread_self(), "http");
    return nullptr;
  }

  static int BeginRequest(mg_connection* connection) {
    const mg_request_info* request = mg_get_request_info(connection);
    auto* self = static_cast<CivetServer*>(request->user_data);
    return self->Answer(connection, request->request_method,
                        request->local_uri);
  }

  // The status sent; also what civetweb wants back for "answered".
  int Answer(mg_connection* connection, absl::string_view method,
             absl::string_view path) {
    if (method != "GET" && method != "HEAD") {
      return Send(connection, 405, "Method Not Allowed", kText,
                  "only GET is answered here\n", true);
    }
    const bool body = method == "GET";
    if (path == "/metrics") {
      return Send(connection, 200, "OK", kPrometheus, sources_.metrics_text(),
                  body);
    }
    if (path == "/healthz") {
      return Send(connection, 200, "OK", kText, "alive\n", body);
    }
    if (path == "/readyz") {
      if (sources_.ready()) {
        return Send(connection, 200, "OK", kText, "ready\n", body);
      }
      return Send(connection, 503, "Service Unavailable", kText, "not ready\n",
                  body);
    }
    return Send(connection, 404, "Not Found", kText,
                "only /metrics, /healthz and /readyz are here\n", body);
  }

  static int Send(mg_connection* connection, int code, const char* reason,
                  const char* type, const std::string& text, bool body) {
    const std::string head = absl::StrCat(
        "HTTP/1.1 ", code, " ", reason, "\r\nContent-Type: ", type,
        "\r\nContent-Length: ", text.size(),
        "\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n");
    mg_write(connection, head.data(), head.size());
    if (body) mg_write(connection, text.data(), text.size());
    return code;
  }

  const HttpSources sources_;
  mg_context* context_ = nullptr;
  int port_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const std::string& address, HttpSources sources) {
  auto server = std::make_unique<CivetServer>(std::move(sources));
  const absl::Status status = server->Listen(address);
  if (!status.ok()) return status;
  return server;
}

}  // namespace encoderd
