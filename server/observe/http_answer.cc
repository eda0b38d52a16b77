#include <new>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/observe/http.h"

namespace encoderd {
namespace {

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

// If memory runs out, a scrape fails and the server continues.
std::string MetricsPage(const HttpSources& sources, bool head_only) {
  try {
    return Response("200 OK", kPrometheus, sources.metrics_text(), head_only);
  } catch (const std::bad_alloc&) {
    return Response("503 Service Unavailable", kText, "out of memory; retry\n",
                    head_only);
  }
}

}  // namespace

std::string AnswerHttp(absl::string_view head, const HttpSources& sources) {
  const absl::string_view line = head.substr(0, head.find("\r\n"));
  const size_t first = line.find(' ');
  const size_t second = line.rfind(' ');
  if (first == absl::string_view::npos || second <= first + 1 ||
      !absl::StartsWith(line.substr(second + 1), "HTTP/1.")) {
    return Response("400 Bad Request", kText, "not an HTTP/1.1 request\n",
                    false);
  }
  const absl::string_view method = line.substr(0, first);
  absl::string_view path = line.substr(first + 1, second - first - 1);
  path = path.substr(0, path.find('?'));
  const bool head_only = method == "HEAD";
  if (method != "GET" && !head_only) {
    return Response("405 Method Not Allowed", kText, "only GET is supported\n",
                    false);
  }
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

std::string HeadTooLargeHttp(size_t limit) {
  return Response("431 Request Header Fields Too Large", kText,
                  absl::StrCat("at most ", limit, " bytes per request head\n"),
                  false);
}

}  // namespace encoderd
