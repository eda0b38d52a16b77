#include <new>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/observe/http.h"
#include "server/observe/http_head.h"

namespace encoderd {
namespace {

constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kPrometheus[] = "text/plain; version=0.0.4; charset=utf-8";

// `headers`: further ones, each ended by CRLF.
std::string Response(absl::string_view status, absl::string_view type,
                     absl::string_view body, bool head_only,
                     absl::string_view headers = "") {
  return absl::StrCat(
      "HTTP/1.1 ", status, "\r\n", headers, "Content-Type: ", type,
      "\r\nContent-Length: ", body.size(),
      "\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
      head_only ? "" : body);
}

// If memory runs out, a scrape fails and the server continues.
std::string MetricsPage(const HttpSources& sources, bool head_only) {
  try {
    return Response("200 OK", kPrometheus, sources.metrics_text(), head_only);
  } catch (const std::bad_alloc&) {
    return Response("503 Service Unavailable", kText, "out of memory; retry\n",
                    head_only);
  }
}

bool IsServed(absl::string_view method) {
  return method == "GET" || method == "HEAD";
}

}  // namespace

std::string AnswerHttp(absl::string_view head, const HttpSources& sources) {
  const bool head_only = absl::StartsWith(head, "HEAD ");
  const auto request = ParseHttpHead(head);
  if (!request.ok()) {
    return Response(absl::IsUnimplemented(request.status())
                        ? "505 HTTP Version Not Supported"
                        : "400 Bad Request",
                    kText, absl::StrCat(request.status().message(), "\n"),
                    head_only);
  }
  if (!IsServed(request->method)) {
    return Response("405 Method Not Allowed", kText,
                    "only GET and HEAD are supported\n", head_only,
                    "Allow: GET, HEAD\r\n");
  }
  const absl::string_view path = request->path;
  if (path == "/metrics") return MetricsPage(sources, head_only);
  if (path == "/healthz") {
    return Response("200 OK", kText, "alive\n", head_only);
  }
  if (path == "/readyz") {
    return sources.ready() ? Response("200 OK", kText, "ready\n", head_only)
                           : Response("503 Service Unavailable", kText,
                                      "not ready\n", head_only);
  }
  return Response("404 Not Found", kText,
                  "not found; available: /metrics, /healthz, /readyz\n",
                  head_only);
}

bool AsksForMetricsHttp(absl::string_view head) {
  const auto request = ParseHttpHead(head);
  return request.ok() && IsServed(request->method) &&
         request->path == "/metrics";
}

std::string MetricsAnswerHttp(const HttpSources& sources) {
  return MetricsPage(sources, false);
}

std::string HeadTooLargeHttp(size_t limit) {
  return Response("431 Request Header Fields Too Large", kText,
                  absl::StrCat("at most ", limit, " bytes per request head\n"),
                  false);
}

}  // namespace encoderd
