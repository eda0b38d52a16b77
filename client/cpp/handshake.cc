#include "client/cpp/handshake.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "google/rpc/status.pb.h"

namespace encoderd::client {
namespace {

constexpr char kFaultUrl[] = "encoderd.client/connection_fault";

// What gRPC says where it has no connection, instead of one that broke.
bool IsWithoutConnection(const grpc::Status& status) {
  const std::string message = status.error_message();
  if (!status.error_details().empty()) return false;
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::StrContains(message, "http2 header with status");
  }
  return status.error_code() == grpc::StatusCode::UNAVAILABLE &&
         // The words of round_robin, of pick_first, and of no address.
         (absl::StartsWith(message, "connections to all backends failing") ||
          absl::StartsWith(message, "failed to connect to all") ||
          absl::StartsWith(message, "DNS resolution failed") ||
          absl::StartsWith(message, "empty address list"));
}

using Fault = ConnectionFault;

// Words of gRPC or of its TLS library, in lower case with blanks for '_', and
// what they mean to the caller. The first that fits counts. "$0" is the target.
// tests/support/connection_errors.txt has them as they are said.
struct Explanation {
  enum Client { kPlain, kTls, kAny };
  Client client;
  absl::string_view sign;
  absl::string_view words;
  Fault fault = Fault::kSecurity;
};

constexpr absl::string_view kExpired =
    "the certificate of $0 has expired, or this machine's clock is wrong; "
    "renew it on the server, or set the clock";
constexpr absl::string_view kNotYetValid =
    "the certificate of $0 is not valid yet, or this machine's clock is wrong; "
    "set the clock";
constexpr absl::string_view kNotTrusted =
    "the certificate of $0 is not trusted; set ca_file to the file of its CA, "
    "or renew it on the server if it has expired";
constexpr absl::string_view kOtherName =
    "the certificate of $0 is for another name; connect by a name in the "
    "certificate, or set server_name to one";
constexpr absl::string_view kNoTls =
    "$0 does not speak TLS; check the port, or enable TLS on the server "
    "(--tls_certificate_file, --tls_key_file)";
constexpr absl::string_view kNoGrpc =
    "$0 speaks TLS, but not gRPC; correct the port";
constexpr absl::string_view kOwnCertificate =
    "$0 refuses this client's certificate, or requires one; set "
    "certificate_file and key_file to a pair that it trusts";
constexpr absl::string_view kMaybeOwnCertificate =
    "$0 closed the connection at once; if it requires a client certificate, "
    "set certificate_file and key_file to a pair that it trusts";
constexpr absl::string_view kNoAuthorities =
    "TLS cannot begin: ca_file is not set and the system has no file of "
    "authorities, or certificate_file or key_file cannot be used";
constexpr absl::string_view kMaybeTls =
    "$0 closed the connection at once; if it expects TLS, set tls or ca_file; "
    "if it has reached its limit of connections from this host, close some; "
    "else correct the port";
constexpr absl::string_view kEndedHandshake =
    "$0 ended the TLS handshake; check the port, and whether its server has "
    "TLS";
constexpr absl::string_view kRefused =
    "no server is listening at $0; start encoderd there, or correct the target";
constexpr absl::string_view kHttp =
    "$0 answers HTTP, not gRPC: encoderd's port for gRPC is 8400 unless its "
    "--listen says otherwise; 8401 is for metrics";
constexpr absl::string_view kNoName =
    "the host name of $0 is unknown: correct the target";
constexpr absl::string_view kSilent =
    "$0 accepts connections but does not answer as a gRPC server: correct the "
    "port; a server that hangs does the same";
constexpr absl::string_view kUnreachable =
    "$0 cannot be reached: check the address, the network and firewalls";

constexpr Explanation kExplanations[] = {
    {Explanation::kAny, "connection refused", kRefused, Fault::kRefused},
    {Explanation::kPlain, "http1.x", kHttp, Fault::kHttp},
    {Explanation::kPlain, "failed parsing http/2", kHttp, Fault::kHttp},
    {Explanation::kAny, "http2 header with status", kHttp, Fault::kHttp},
    {Explanation::kAny, "dns resolution failed", kNoName, Fault::kNoName},
    {Explanation::kAny, "settings frame", kSilent, Fault::kSilent},
    {Explanation::kAny, "no route to host", kUnreachable, Fault::kUnreachable},
    {Explanation::kAny, "network is unreachable", kUnreachable,
     Fault::kUnreachable},
    {Explanation::kAny, "connection timed out", kUnreachable,
     Fault::kUnreachable},
    {Explanation::kAny, "host is down", kUnreachable, Fault::kUnreachable},
    {Explanation::kTls, "handshake read failed", kEndedHandshake},
    {Explanation::kTls, "certificate has expired", kExpired},
    {Explanation::kTls, "certificate is not yet valid", kNotYetValid},
    {Explanation::kTls, "certificate verify failed", kNotTrusted},
    {Explanation::kTls, "empty address list", kNoAuthorities},
    {Explanation::kTls, "is not in peer certificate", kOtherName},
    {Explanation::kTls, "hostname verification", kOtherName},
    {Explanation::kTls, "wrong version number", kNoTls},
    {Explanation::kTls, "packet length too long", kNoTls},
    {Explanation::kTls, " alert ", kOwnCertificate},
    {Explanation::kTls, "alpn", kNoGrpc},
    {Explanation::kTls, "socket closed", kMaybeOwnCertificate},
    {Explanation::kTls, "connection reset", kMaybeOwnCertificate},
    {Explanation::kTls, "broken pipe", kMaybeOwnCertificate},
    {Explanation::kTls, "endpoint closing", kMaybeOwnCertificate},
    {Explanation::kTls, "endpoint read failed", kMaybeOwnCertificate},
    {Explanation::kTls, "unwrap failed", kMaybeOwnCertificate},
    {Explanation::kPlain, "socket closed", kMaybeTls},
    {Explanation::kPlain, "connection reset", kMaybeTls},
    {Explanation::kPlain, "broken pipe", kMaybeTls},
    {Explanation::kPlain, "endpoint closing", kMaybeTls},
    {Explanation::kPlain, "endpoint read failed", kMaybeTls},
    {Explanation::kPlain, "unwrap failed", kMaybeTls},
};

// Whether an explanation is for a client that encrypts as `tls` says.
bool IsFor(const Explanation& explanation, std::optional<bool> tls) {
  if (explanation.client == Explanation::kAny) return true;
  return tls.has_value() && *tls == (explanation.client == Explanation::kTls);
}

}  // namespace

grpc::Status ExplainHandshake(const grpc::Status& status,
                              std::optional<bool> tls,
                              absl::string_view target) {
  if (!IsWithoutConnection(status)) return status;
  const std::string said = absl::StrReplaceAll(
      absl::AsciiStrToLower(status.error_message()), {{"_", " "}});
  std::string words = "no connection to $0";
  Fault fault = Fault::kUnknown;
  for (const Explanation& entry : kExplanations) {
    if (!IsFor(entry, tls) || !absl::StrContains(said, entry.sign)) continue;
    words = std::string(entry.words);
    fault = entry.fault;
    break;
  }
  words = absl::StrReplaceAll(words, {{"$0", target}});
  if (fault == Fault::kUnknown || fault == Fault::kSecurity) {
    absl::StrAppend(&words, "; gRPC says: ", status.error_message());
  }
  // FromGrpc makes a payload of every detail.
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.error_code()));
  details.set_message(words);
  google::protobuf::Any* detail = details.add_details();
  detail->set_type_url(kFaultUrl);
  detail->set_value(absl::StrCat(static_cast<int>(fault)));
  return grpc::Status(status.error_code(), words, details.SerializeAsString());
}

std::optional<ConnectionFault> GetConnectionFault(const absl::Status& status) {
  const auto payload = status.GetPayload(kFaultUrl);
  int fault = 0;
  if (!payload.has_value() ||
      !absl::SimpleAtoi(std::string(*payload), &fault)) {
    return std::nullopt;
  }
  return static_cast<ConnectionFault>(fault);
}

}  // namespace encoderd::client
