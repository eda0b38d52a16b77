#include "client/cpp/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace encoderd::client {
namespace {

// "host:port", "host", "[address]:port", "address" -> host or address.
absl::string_view HostOf(absl::string_view target) {
  if (absl::ConsumePrefix(&target, "[")) {
    return target.substr(0, target.find(']'));
  }
  const size_t colon = target.find(':');
  const bool one = colon != absl::string_view::npos &&
                   target.find(':', colon + 1) == absl::string_view::npos;
  return one ? target.substr(0, colon) : target;
}

// The same, after "dns:" or none. What is left of "dns://RESOLVER/name" is no
// host of this machine.
absl::string_view HostOfName(absl::string_view target) {
  if (absl::ConsumePrefix(&target, "dns:")) {
    absl::ConsumePrefix(&target, "///");
  }
  return HostOf(target);
}

bool IsLoopbackHost(absl::string_view host) {
  const std::string text = absl::AsciiStrToLower(host);
  if (text == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) {
    return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  in6_addr v6;
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 &&
         IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace

bool IsLoopback(absl::string_view target) {
  if (absl::StartsWith(target, "unix:") ||
      absl::StartsWith(target, "unix-abstract:")) {
    return true;
  }
  if (absl::ConsumePrefix(&target, "ipv4:") ||
      absl::ConsumePrefix(&target, "ipv6:")) {
    const std::vector<absl::string_view> all = absl::StrSplit(target, ',');
    return std::all_of(all.begin(), all.end(), [](absl::string_view one) {
      return IsLoopbackHost(HostOf(absl::StripPrefix(one, "///")));
    });
  }
  return IsLoopbackHost(HostOfName(target));
}

bool IsLocalhost(absl::string_view target) {
  return absl::EqualsIgnoreCase(HostOfName(target), "localhost");
}

}  // namespace encoderd::client
