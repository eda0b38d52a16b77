#include "server/observe/http_head.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace encoderd {
namespace {

constexpr size_t kMaxLengthDigits = 18;  // fits in 64 bits

absl::Status Invalid(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

// True if `text` has letters, digits and these others only.
bool HasOnly(absl::string_view text, absl::string_view others) {
  return absl::c_all_of(text, [others](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains(others, c);
  });
}

bool IsToken(absl::string_view text) {
  return !text.empty() && HasOnly(text, "!#$%&'*+-.^_`|~");
}

absl::Status CheckVersion(absl::string_view version) {
  constexpr char kSpoken[] = "only HTTP/1.0 and HTTP/1.1 are supported";
  if (version.size() != 8 || !absl::StartsWith(version, "HTTP/") ||
      !absl::ascii_isdigit(version[5]) || version[6] != '.' ||
      !absl::ascii_isdigit(version[7]) || version[5] == '0') {
    return Invalid(kSpoken);
  }
  // A later minor version is answered as 1.1 (RFC 9110, 2.5).
  return version[5] == '1' ? absl::OkStatus()
                           : absl::UnimplementedError(kSpoken);
}

absl::StatusOr<absl::string_view> PathOf(absl::string_view target) {
  if (!absl::c_all_of(target, absl::ascii_isgraph)) {
    return Invalid("the target has a character that must be percent-encoded");
  }
  for (const absl::string_view scheme : {"http://", "https://"}) {
    if (!absl::StartsWithIgnoreCase(target, scheme)) continue;
    target.remove_prefix(scheme.size());
    const size_t authority =
        std::min(target.find_first_of("/?"), target.size());
    if (authority == 0) return Invalid("the target names no host");
    target.remove_prefix(authority);
    break;
  }
  const absl::string_view path = target.substr(0, target.find('?'));
  return path.empty() ? "/" : path;
}

// What the header lines up to one have said.
struct Headers {
  bool host = false;
  absl::string_view length;  // "": nothing yet
};

absl::Status CheckHeader(absl::string_view name, absl::string_view value,
                         Headers* headers) {
  if (absl::EqualsIgnoreCase(name, "Host")) {
    if (headers->host) return Invalid("two Host headers");
    if (!HasOnly(value, "-._~%!$&'()*+,;=:[]")) {
      return Invalid("Host is neither a name nor an address");
    }
    headers->host = true;
  } else if (absl::EqualsIgnoreCase(name, "Content-Length")) {
    if (value.empty() || value.size() > kMaxLengthDigits ||
        !absl::c_all_of(value, absl::ascii_isdigit)) {
      return Invalid(absl::StrCat("Content-Length is not a number of at most ",
                                  kMaxLengthDigits, " digits"));
    }
    if (!headers->length.empty() && headers->length != value) {
      return Invalid("two different Content-Length headers");
    }
    headers->length = value;
  }
  return absl::OkStatus();
}

absl::Status CheckLine(absl::string_view line, size_t number,
                       Headers* headers) {
  const auto bad = [number](absl::string_view what) {
    return Invalid(absl::StrCat("header line ", number, what));
  };
  if (absl::StartsWith(line, " ") || absl::StartsWith(line, "\t")) {
    return bad(" begins with a blank");
  }
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos) return bad(" has no colon");
  const absl::string_view name = line.substr(0, colon);
  if (!IsToken(name)) return bad(" has an invalid name");
  return CheckHeader(name, absl::StripAsciiWhitespace(line.substr(colon + 1)),
                     headers);
}

}  // namespace

std::optional<absl::string_view> FindHttpHead(absl::string_view received) {
  absl::ConsumePrefix(&received, "\r\n");
  if (absl::StartsWith(received, "\r\n")) return "";
  const size_t end = received.find("\r\n\r\n");
  if (end == absl::string_view::npos) return std::nullopt;
  return received.substr(0, end);
}

absl::StatusOr<HttpHead> ParseHttpHead(absl::string_view head) {
  const std::vector<absl::string_view> lines = absl::StrSplit(head, "\r\n");
  for (const absl::string_view line : lines) {
    if (absl::c_any_of(line, [](unsigned char c) {
          return absl::ascii_iscntrl(c) && c != '\t';
        })) {
      return Invalid("a control character in the head");
    }
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(lines[0], ' ');
  if (parts.size() != 3 || parts[0].empty() || parts[1].empty()) {
    return Invalid(
        "the request line must be METHOD TARGET VERSION, one space apart");
  }
  if (!IsToken(parts[0])) {
    return Invalid("the method has a character that methods may not have");
  }
  if (const absl::Status version = CheckVersion(parts[2]); !version.ok()) {
    return version;
  }
  const absl::StatusOr<absl::string_view> path = PathOf(parts[1]);
  if (!path.ok()) return path.status();
  Headers headers;
  for (size_t i = 1; i < lines.size(); ++i) {
    const absl::Status line = CheckLine(lines[i], i, &headers);
    if (!line.ok()) return line;
  }
  if (parts[2] != "HTTP/1.0" && !headers.host) {
    return Invalid("HTTP/1.1 needs a Host header");
  }
  return HttpHead{parts[0], *path};
}

}  // namespace encoderd
