#include "client/cpp/handshake.h"

#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
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

std::string Raw(const std::string& cause) {
  return absl::StrCat(
      "connections to all backends failing; last error: UNKNOWN: "
      "ipv4:127.0.0.1:8400: ",
      cause);
}

grpc::Status Unavailable(const std::string& message) {
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, message);
}

// What a message begins with, "$0" for the target; all of it where the cause is
// certain.
struct Said {
  std::string words;
  ConnectionFault fault = ConnectionFault::kSecurity;
};

constexpr char kHttp[] =
    "$0 answers HTTP, not gRPC: encoderd's port for gRPC is 8400 unless its "
    "--listen says otherwise; 8401 is for metrics";
constexpr char kUnreachable[] =
    "$0 cannot be reached: check the address, the network and firewalls";

// This client's words for the faults of connection_errors.txt.
const std::map<std::string, Said>& Faults() {
  using Fault = ConnectionFault;
  static const auto& faults = *new std::map<std::string, Said>{
      {"refused",
       {"no server is listening at $0; start encoderd there, or correct the "
        "target",
        Fault::kRefused}},
      {"http", {kHttp, Fault::kHttp}},
      {"no_grpc", {kHttp, Fault::kHttp}},
      {"http_status", {kHttp, Fault::kHttp}},
      {"no_name",
       {"the host name of $0 is unknown: correct the target", Fault::kNoName}},
      {"silent",
       {"$0 accepts connections but does not answer as a gRPC server: correct "
        "the port; a server that hangs does the same",
        Fault::kSilent}},
      {"timed_out", {kUnreachable, Fault::kUnreachable}},
      {"unreachable", {kUnreachable, Fault::kUnreachable}},
      {"no_socket", {"no connection to $0", Fault::kUnknown}},
      {"no_permission", {"no connection to $0", Fault::kUnknown}},
      {"unknown", {"no connection to $0", Fault::kUnknown}},
      {"not_trusted", {"the certificate of $0 is not trusted; "}},
      {"expired",
       {"the certificate of $0 has expired, or this machine's clock is wrong"}},
      {"not_yet_valid",
       {"the certificate of $0 is not valid yet, or this machine's clock is "
        "wrong"}},
      {"other_name", {"the certificate of $0 is for another name; "}},
      {"no_authorities",
       {"TLS cannot begin: ca_file is not set and the system has no file of "
        "authorities"}},
      {"own_certificate",
       {"$0 refuses this client's certificate, or requires one; "}},
      {"no_tls", {"$0 does not speak TLS; "}},
      {"no_alpn", {"$0 speaks TLS, but not gRPC; "}},
      {"ended_handshake", {"$0 ended the TLS handshake; "}},
      {"closed", {"$0 closed the connection at once; "}}};
  return faults;
}

void ExpectSaid(const std::string& raw, std::optional<bool> tls,
                const Said& said) {
  const grpc::Status status = ExplainHandshake(Unavailable(raw), tls, kTarget);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(GetConnectionFault(FromGrpc(status, 0)), said.fault) << raw;
  const std::string words = absl::StrReplaceAll(said.words, {{"$0", kTarget}});
  if (said.fault == ConnectionFault::kSecurity ||
      said.fault == ConnectionFault::kUnknown) {
    EXPECT_THAT(
        status.error_message(),
        AllOf(StartsWith(words), EndsWith(absl::StrCat("; gRPC says: ", raw))));
  } else {
    EXPECT_EQ(status.error_message(), words);
  }
}

// Calls `check` with the words, "plain", "tls" or "any", and the fault of each
// line of the table.
void ForEachError(absl::FunctionRef<void(const std::string&, const std::string&,
                                         const std::string&)>
                      check) {
  std::ifstream table(ENCODERD_CONNECTION_ERRORS);
  std::vector<std::string> beginnings;
  for (std::string line; std::getline(table, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> entry = absl::StrSplit(line, " | ");
    if (entry.size() == 1) {
      beginnings.emplace_back(absl::StripSuffix(line, "..."));
      continue;
    }
    ASSERT_EQ(entry.size(), 3u) << line;
    absl::string_view words = entry[0];
    if (!absl::ConsumePrefix(&words, "... ")) {
      check(std::string(words), entry[1], entry[2]);
      continue;
    }
    for (const std::string& beginning : beginnings) {
      check(absl::StrCat(beginning, words), entry[1], entry[2]);
    }
  }
}

TEST(ExplainHandshakeTest, FindsTheFaultOfGrpcsWordsAsThePythonClientDoes) {
  std::set<std::string> seen;
  ForEachError([&](const std::string& raw, const std::string& clients,
                   const std::string& fault) {
    ASSERT_TRUE(Faults().contains(fault)) << fault;
    seen.insert(fault);
    if (clients != "tls") ExpectSaid(raw, false, Faults().at(fault));
    if (clients != "plain") ExpectSaid(raw, true, Faults().at(fault));
  });
  EXPECT_EQ(seen.size(), Faults().size());
}

TEST(ExplainHandshakeTest, SaysOfUnknownCredentialsOnlyWhatIsTrueOfAll) {
  ForEachError([](const std::string& raw, const std::string& clients,
                  const std::string& fault) {
    // What a server may want that closes at once depends on TLS.
    const bool certain = clients == "any" && fault != "closed";
    ExpectSaid(raw, std::nullopt, Faults().at(certain ? fault : "unknown"));
  });
}

TEST(ExplainHandshakeTest, SaysWhatAServerMayWantThatClosesAtOnce) {
  const std::string raw = Raw("Socket closed");
  ExpectSaid(raw, false,
             {"$0 closed the connection at once; if it expects TLS, "});
  ExpectSaid(raw, true,
             {"$0 closed the connection at once; if it requires a client "
              "certificate, "});
}

TEST(ExplainHandshakeTest, KnowsAnHttpServerByAMethodThatItLacks) {
  const grpc::Status status =
      ExplainHandshake(grpc::Status(grpc::StatusCode::UNIMPLEMENTED,
                                    "Received http2 header with status: 404"),
                       false, kTarget);
  EXPECT_EQ(status.error_message(),
            absl::StrReplaceAll(kHttp, {{"$0", kTarget}}));
}

TEST(ExplainHandshakeTest, NamesTheTargetWhereTheCauseIsNotKnown) {
  EXPECT_EQ(ExplainHandshake(Unavailable(Raw("something new")), false, "host:1")
                .error_message(),
            "no connection to host:1; gRPC says: " + Raw("something new"));
}

TEST(ExplainHandshakeTest, TellsProgramsTheFaultApartFromDetails) {
  const absl::Status refused = FromGrpc(
      ExplainHandshake(Unavailable(Raw("Connection refused")), false, kTarget),
      0);
  EXPECT_EQ(GetConnectionFault(refused), ConnectionFault::kRefused);
  EXPECT_FALSE(GetErrorDetails(refused).has_value());
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
