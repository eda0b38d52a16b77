#include "client/cpp/handshake.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace encoderd::client {
namespace {

// What gRPC says where it has no connection, instead of one that broke; the
// words are those of round_robin, of pick_first, and of no address.
bool IsWithoutConnection(absl::string_view message) {
  return absl::StartsWith(message, "connections to all backends failing") ||
         absl::StartsWith(message, "failed to connect to all") ||
         absl::StartsWith(message, "empty address list");
}

// Words of gRPC or of its TLS library, in lower case with blanks for '_', and
// what they mean to the caller. The first that fits counts.
struct Explanation {
  bool tls;  // of a client that encrypts
  absl::string_view sign;
  absl::string_view words;
};

constexpr absl::string_view kNotTrusted =
    "the server's certificate is not trusted: no authority of ca_file (none "
    "given: the system's) vouches for it, or it is out of date";
constexpr absl::string_view kOtherName =
    "the server's certificate is for another name: give one that it has as "
    "server_name";
constexpr absl::string_view kNoTls =
    "the server speaks no TLS there: leave out tls and ca_file, or name "
    "another port";
constexpr absl::string_view kNoGrpc =
    "the server speaks TLS there, but not gRPC: name another port";
constexpr absl::string_view kOwnCertificate =
    "the server refuses this client's certificate or asks for one: see "
    "certificate_file and key_file";
constexpr absl::string_view kMaybeOwnCertificate =
    "the server closed the connection at once: it may ask for a certificate "
    "that it trusts (certificate_file, key_file)";
constexpr absl::string_view kNoAuthorities =
    "TLS cannot begin: ca_file is not set and the system has no file of "
    "authorities, or certificate_file or key_file cannot be used";
constexpr absl::string_view kMaybeTls =
    "the server closed the connection at once: it may want TLS (tls, ca_file)";

constexpr Explanation kExplanations[] = {
    {true, "certificate verify failed", kNotTrusted},
    {true, "empty address list", kNoAuthorities},
    {true, "is not in peer certificate", kOtherName},
    {true, "hostname verification", kOtherName},
    {true, "wrong version number", kNoTls},
    {true, "packet length too long", kNoTls},
    {true, " alert ", kOwnCertificate},
    {true, "alpn", kNoGrpc},
    {true, "socket closed", kMaybeOwnCertificate},
    {true, "connection reset", kMaybeOwnCertificate},
    {true, "endpoint read failed", kMaybeOwnCertificate},
    {false, "socket closed", kMaybeTls},
    {false, "endpoint read failed", kMaybeTls},
    {false, "connection reset", kMaybeTls},
};

}  // namespace

grpc::Status ExplainHandshake(const grpc::Status& status, bool tls) {
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE ||
      !status.error_details().empty() ||
      !IsWithoutConnection(status.error_message())) {
    return status;
  }
  const std::string said = absl::StrReplaceAll(
      absl::AsciiStrToLower(status.error_message()), {{"_", " "}});
  for (const Explanation& entry : kExplanations) {
    if (entry.tls != tls || !absl::StrContains(said, entry.sign)) continue;
    return grpc::Status(
        status.error_code(),
        absl::StrCat(entry.words, "; gRPC says: ", status.error_message()));
  }
  return status;
}

bool IsHandshakeError(const absl::Status& status) {
  return absl::IsUnavailable(status) &&
         std::any_of(std::begin(kExplanations), std::end(kExplanations),
                     [&](const Explanation& entry) {
                       return absl::StartsWith(status.message(), entry.words);
                     });
}

}  // namespace encoderd::client
