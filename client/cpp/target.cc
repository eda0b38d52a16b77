#include "client/cpp/target.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace encoderd::client {
namespace {

constexpr int kDefaultPort = 8400;
constexpr int kHighestPort = 65535;

template <typename... Parts>
absl::Status Refused(absl::string_view target, const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat("target \"", target, "\": ", parts...));
}

bool AreDigits(absl::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// One "host[:port]" of `target`, with its port.
absl::StatusOr<std::string> WithPort(absl::string_view target,
                                     absl::string_view address) {
  const bool bracketed = absl::StartsWith(address, "[");
  // The colons of an IPv6 address without brackets separate no port.
  const bool many =
      !bracketed && std::count(address.begin(), address.end(), ':') > 1;
  size_t host_bytes = many ? address.size() : address.find(':');
  if (bracketed) {
    const size_t bracket = address.find(']');
    if (bracket == absl::string_view::npos) {
      return Refused(target, "the bracket is not closed: write [ADDRESS]:PORT");
    }
    host_bytes = bracket + 1;
  }
  const absl::string_view host = address.substr(0, host_bytes);
  absl::string_view port = address.substr(host.size());
  const bool has_port = absl::ConsumePrefix(&port, ":");
  if (!has_port && !port.empty()) {
    return Refused(target,
                   "only a port may follow the bracket: write [ADDRESS]:PORT");
  }
  if (host.empty() || host == "[]") {
    return Refused(target,
                   "the host is missing: write HOST:PORT, such as "
                   "localhost:",
                   port.empty() ? "8400" : port);
  }
  int number = 0;
  if (has_port && (!AreDigits(port) || !absl::SimpleAtoi(port, &number) ||
                   number < 1 || number > kHighestPort)) {
    return Refused(target, "the port must be a number from 1 to ", kHighestPort,
                   "; encoderd's is ", kDefaultPort, " unless its --listen ",
                   "says otherwise");
  }
  const size_t foreign = host.find_first_of("/?#@,");
  if (foreign != absl::string_view::npos) {
    return Refused(target, "a host has no '", host.substr(foreign, 1),
                   "': write HOST:PORT, such as localhost:8400");
  }
  if (has_port) return std::string(address);
  if (AreDigits(host)) {
    return Refused(target, "a port without a host: write localhost:", host);
  }
  return many ? absl::StrCat("[", host, "]:", kDefaultPort)
              : absl::StrCat(host, ":", kDefaultPort);
}

// Whether `target` begins with a scheme and "://" at `slashes`.
bool HasScheme(absl::string_view target, size_t slashes) {
  return slashes != absl::string_view::npos && slashes > 0 &&
         absl::ascii_isalpha(target[0]) &&
         std::all_of(target.begin(), target.begin() + slashes, [](char c) {
           return absl::ascii_isalnum(c) || absl::StrContains("_+.-", c);
         });
}

// A URL's scheme, which gRPC would take for a name to look up.
bool IsUrlScheme(absl::string_view scheme) {
  for (const char* const other :
       {"http", "https", "grpc", "grpcs", "h2", "h2c", "tcp", "tls"}) {
    if (absl::EqualsIgnoreCase(scheme, other)) return true;
  }
  return false;
}

bool IsEncrypted(absl::string_view url) {
  for (const char* const scheme : {"https:", "grpcs:", "tls:"}) {
    if (absl::StartsWithIgnoreCase(url, scheme)) return true;
  }
  return false;
}

absl::Status RefuseUrl(absl::string_view target, size_t host_at) {
  const absl::string_view address =
      target.substr(host_at, target.find('/', host_at) - host_at);
  return Refused(target, "a URL is not an address: write HOST:PORT, such as ",
                 address.empty() || absl::EndsWith(address, ":8401")
                     ? "localhost:8400"
                     : address,
                 IsEncrypted(target) ? ", and turn TLS on (tls)" : "");
}

}  // namespace

absl::StatusOr<std::string> CheckTarget(absl::string_view target) {
  if (target.empty()) {
    return absl::InvalidArgumentError(
        "target is empty: write HOST:PORT, such as localhost:8400");
  }
  if (std::any_of(target.begin(), target.end(), [](char c) {
        return absl::ascii_isspace(c) || absl::ascii_iscntrl(c);
      })) {
    return Refused(target, "an address has no blanks: write HOST:PORT");
  }
  const size_t slashes = target.find("://");
  if (slashes != absl::string_view::npos &&
      IsUrlScheme(target.substr(0, slashes))) {
    return RefuseUrl(target, slashes + 3);
  }
  for (const char* const scheme : {"ipv4:///", "ipv6:///", "ipv4:", "ipv6:"}) {
    absl::string_view rest = target;
    if (!absl::ConsumePrefix(&rest, scheme)) continue;
    std::vector<std::string> addresses;
    for (const absl::string_view address : absl::StrSplit(rest, ',')) {
      auto checked = WithPort(target, address);
      if (!checked.ok()) return checked.status();
      addresses.push_back(*std::move(checked));
    }
    return absl::StrCat(scheme, absl::StrJoin(addresses, ","));
  }
  if (absl::StartsWith(target, "dns:")) {
    // "dns:host", "dns:///host" or "dns://resolver/host".
    const size_t from = absl::StartsWith(target, "dns://") ? target.find('/', 6)
                                                           : target.find(':');
    if (from == absl::string_view::npos) {
      return Refused(target, "the host is missing: write dns:///HOST:PORT");
    }
    const auto checked = WithPort(target, target.substr(from + 1));
    if (!checked.ok()) return checked.status();
    return absl::StrCat(target.substr(0, from + 1), *checked);
  }
  for (const char* const scheme :
       {"unix:", "unix-abstract:", "vsock:", "xds:"}) {
    if (absl::StartsWith(target, scheme)) return std::string(target);
  }
  if (HasScheme(target, slashes)) return std::string(target);
  return WithPort(target, target);
}

}  // namespace encoderd::client
