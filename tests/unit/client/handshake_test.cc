#include "client/cpp/handshake.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "client/cpp/error.h"
#include "client/cpp/grpc_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_encoder_service.h"

namespace encoderd::client {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr char kTarget[] = "127.0.0.1:8400";
// With round_robin and with pick_first.
constexpr absl::string_view kBeginnings[] = {
    "connections to all backends failing",
    "failed to connect to all addresses"};

std::string Raw(const std::string& cause,
                absl::string_view beginning = kBeginnings[0]) {
  return absl::StrCat(beginning,
                      "; last error: UNKNOWN: ipv4:127.0.0.1:8400: ", cause);
}

// With the target for "$0".
std::string At(absl::string_view words) {
  return absl::StrReplaceAll(words, {{"$0", kTarget}});
}

grpc::Status Unavailable(const std::string& message) {
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, message);
}

void ExpectExplained(const std::string& cause, bool tls,
                     const std::string& words) {
  for (const absl::string_view beginning : kBeginnings) {
    const std::string raw = Raw(cause, beginning);
    const grpc::Status status =
        ExplainHandshake(Unavailable(raw), tls, kTarget);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_THAT(
        status.error_message(),
        AllOf(StartsWith(words), EndsWith(absl::StrCat("; gRPC says: ", raw))));
  }
}

TEST(ExplainHandshakeTest, SaysWhatIsWrongWithTheServersCertificate) {
  for (const char* cause :
       {"Ssl handshake failed: SSL_ERROR_SSL: error:0A000086:SSL "
        "routines::certificate verify failed",
        "Ssl handshake failed (TSI_PROTOCOL_FAILURE): SSL_ERROR_SSL: "
        "error:1000007d:SSL routines:OPENSSL_internal:"
        "CERTIFICATE_VERIFY_FAILED: self signed certificate"}) {
    ExpectExplained(cause, true, At("the certificate of $0 is not trusted; "));
  }
  const std::string newer =
      "Ssl handshake failed (TSI_PROTOCOL_FAILURE): SSL_ERROR_SSL: "
      "error:1000007d:SSL routines:OPENSSL_internal:"
      "CERTIFICATE_VERIFY_FAILED: certificate ";
  ExpectExplained(newer + "has expired", true,
                  At("the certificate of $0 has expired, or this machine's "));
  ExpectExplained(newer + "is not yet valid", true,
                  At("the certificate of $0 is not valid yet, or this "));
  for (const char* cause :
       {"Peer name example.com is not in peer certificate",
        "Custom verification check failed with error: UNAUTHENTICATED: "
        "Hostname Verification Check failed."}) {
    ExpectExplained(cause, true,
                    At("the certificate of $0 is for another name; "));
  }
}

TEST(ExplainHandshakeTest, SaysThatTheServerRefusesTheClientsCertificate) {
  for (const char* cause :
       {"Ssl handshake failed: SSL_ERROR_SSL: error:0A000410:SSL "
        "routines::sslv3 alert handshake failure",
        "Ssl handshake failed: SSL_ERROR_SSL: error:0A000418:SSL "
        "routines::tlsv1 alert unknown ca"}) {
    ExpectExplained(cause, true,
                    At("$0 refuses this client's certificate, or requires "
                       "one; "));
  }
}

TEST(ExplainHandshakeTest, SaysWhereOneSideSpeaksNoTls) {
  for (const char* cause :
       {"Ssl handshake failed: SSL_ERROR_SSL: error:0A00010B:SSL "
        "routines::wrong version number",
        "Ssl handshake failed: SSL_ERROR_SSL: error:100000f7:SSL "
        "routines:OPENSSL_internal:WRONG_VERSION_NUMBER"}) {
    ExpectExplained(cause, true, At("$0 does not speak TLS; "));
  }
  ExpectExplained("Cannot check peer: missing selected ALPN property.", true,
                  At("$0 speaks TLS, but not gRPC; "));
  for (const char* cause :
       {"Socket closed", "Connection reset by peer", "Endpoint read failed"}) {
    ExpectExplained(cause, false,
                    At("$0 closed the connection at once; if it expects "
                       "TLS, "));
    ExpectExplained(cause, true,
                    At("$0 closed the connection at once; if it requires a "
                       "client certificate, "));
  }
}

TEST(ExplainHandshakeTest, SaysWhereNoAuthorityCanBeFound) {
  const grpc::Status status =
      ExplainHandshake(Unavailable("empty address list: "), true, kTarget);
  EXPECT_THAT(status.error_message(),
              StartsWith("TLS cannot begin: ca_file is not set and the system "
                         "has no file of authorities"));
}

TEST(ExplainHandshakeTest, NamesTheTargetAndTheRemedyInsteadOfGrpcsWords) {
  const std::pair<std::string, const char*> kCases[] = {
      {Raw("Failed to connect to remote host: Connection refused"),
       "no server is listening at host:1; start encoderd there, or correct "
       "the target"},
      {Raw("Trying to connect an http1.x server"),
       "host:1 answers HTTP, not gRPC: encoderd's port for gRPC is 8400 unless "
       "its --listen says otherwise; 8401 is for metrics"},
      {"DNS resolution failed for host:1: C-ares status is not ARES_SUCCESS "
       "qtype=AAAA name=host is_balancer=0: Domain name not found",
       "the host name of host:1 is unknown: correct the target"},
      {Raw("connection attempt timed out before receiving SETTINGS frame"),
       "host:1 accepts connections but does not answer as a gRPC server: "
       "correct the port; a server that hangs does the same"},
      {Raw("Failed to connect to remote host: No route to host"),
       "host:1 cannot be reached: check the address, the network and "
       "firewalls"}};
  for (const auto& [said, words] : kCases) {
    EXPECT_EQ(
        ExplainHandshake(Unavailable(said), false, "host:1").error_message(),
        words);
  }
  EXPECT_EQ(
      ExplainHandshake(grpc::Status(grpc::StatusCode::UNIMPLEMENTED,
                                    "Received http2 header with status: 404"),
                       false, "host:1")
          .error_message(),
      kCases[1].second);
}

TEST(ExplainHandshakeTest, NamesTheTargetWhereTheCauseIsNotKnown) {
  EXPECT_EQ(ExplainHandshake(Unavailable(Raw("something new")), false, "host:1")
                .error_message(),
            "no connection to host:1; gRPC says: " + Raw("something new"));
}

TEST(ExplainHandshakeTest, TellsProgramsTheFault) {
  const std::pair<const char*, ConnectionFault> kCases[] = {
      {"Connection refused", ConnectionFault::kRefused},
      {"Trying to connect an http1.x server", ConnectionFault::kHttp},
      {"before receiving SETTINGS frame", ConnectionFault::kSilent},
      {"No route to host", ConnectionFault::kUnreachable},
      {"Network is unreachable", ConnectionFault::kUnreachable},
      {"DNS resolution failed", ConnectionFault::kNoName},
      {"Socket closed", ConnectionFault::kSecurity},
      {"something new", ConnectionFault::kUnknown}};
  for (const auto& [cause, fault] : kCases) {
    const absl::Status status =
        FromGrpc(ExplainHandshake(Unavailable(Raw(cause)), false, kTarget), 0);
    EXPECT_EQ(GetConnectionFault(status), fault) << cause;
    EXPECT_FALSE(GetErrorDetails(status).has_value()) << cause;
  }
  for (const absl::Status& other :
       {absl::OkStatus(), absl::UnavailableError("Socket closed"),
        absl::UnavailableError("no server listens at host:1")}) {
    EXPECT_EQ(GetConnectionFault(other), std::nullopt) << other;
  }
}

TEST(ExplainHandshakeTest, LeavesEveryOtherErrorAsItIs) {
  const grpc::Status errors[] = {
      grpc::Status::OK, Unavailable("Socket closed"),
      grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no such method"),
      grpc::Status(grpc::StatusCode::INTERNAL, Raw("Socket closed")),
      encoderd::testing::FakeError(grpc::StatusCode::UNAVAILABLE,
                                   Raw("Socket closed"), "DRAINING", {})};
  for (const grpc::Status& error : errors) {
    for (const bool tls : {false, true}) {
      const grpc::Status status = ExplainHandshake(error, tls, kTarget);
      EXPECT_EQ(status.error_message(), error.error_message());
      EXPECT_EQ(status.error_details(), error.error_details());
    }
  }
}

}  // namespace
}  // namespace encoderd::client
