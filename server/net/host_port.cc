#include "server/net/host_port.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace encoderd {
namespace {

constexpr char kHostPort[] = "must be host:port, such as 127.0.0.1:8400";

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(const std::string& address) {
  if (absl::StartsWith(address, "unix:") ||
      absl::StartsWith(address, "unix-abstract:") ||
      absl::StartsWith(address, "/")) {
    return absl::InvalidArgumentError(
        "Unix sockets are not supported: give host:port, such as "
        "127.0.0.1:8400");
  }
  const auto malformed = absl::InvalidArgumentError(kHostPort);
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return malformed;
  HostPort parsed;
  parsed.host = address.substr(0, colon);
  const bool bracketed =
      parsed.host.front() == '[' && parsed.host.back() == ']';
  if (bracketed) parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  if (parsed.host.empty() ||
      (!bracketed && parsed.host.find(':') != std::string::npos)) {
    return malformed;
  }
  const std::string digits = address.substr(colon + 1);
  if (!std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(digits, &parsed.port) || parsed.port > 65535) {
    return absl::InvalidArgumentError("the port must be 0 to 65535");
  }
  return parsed;
}

bool OthersReach(const HostPort& address) {
  const std::string& host = address.host;
  const bool loopback =
      host == "localhost" || host == "::1" ||
      (absl::StartsWith(host, "127.") &&
       host.find_first_not_of("0123456789.") == std::string::npos);
  return !loopback;
}

}  // namespace encoderd
