// Clients against a service that encrypts, asks for certificates or tokens.
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/server_builder.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "client/cpp/error.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "gtest/gtest.h"
#include "tests/support/certificates.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/held_port.h"
#include "tests/support/patience.h"
#include "tests/support/status_matchers.h"

namespace encoderd::client {
namespace {

using encoderd::testing::FakeDoor;
using encoderd::testing::FakeEncoderService;
using ::testing::StartsWith;

std::string Path(const std::string& name) { return CertificatePath(name); }

FakeDoor Encrypted() {
  FakeDoor door;
  door.certificates = CertificateFolder();
  return door;
}

ClientOptions Trusting(const std::string& authority = "ca") {
  ClientOptions options;
  options.ca_file = Path(absl::StrCat(authority, ".pem"));
  return options;
}

ClientOptions Showing(const std::string& certificate) {
  ClientOptions options = Trusting();
  options.certificate_file = Path(absl::StrCat(certificate, ".pem"));
  options.key_file = Path(absl::StrCat(certificate, ".key"));
  return options;
}

// What comes of one call.
absl::Status Call(const std::string& target, const ClientOptions& options) {
  const auto client = Client::Connect(target, options);
  if (!client.ok()) return client.status();
  return (*client)->Embed({"one"}).status();
}

// Three texts over a stream; the first error.
absl::Status EmbedInBulk(const Client& client,
                         const BulkOptions& options = {}) {
  int left = 3;
  int64_t answered = 0;
  const absl::Status status = client.EmbedBulk(
      {[&](v1::Input* input, absl::Status*) -> absl::StatusOr<bool> {
        if (left-- == 0) return false;
        input->set_text("one");
        return true;
      }},
      {}, options, [&](const BulkAnswer& answer) {
        answered += static_cast<int64_t>(answer.embeddings.size());
        return absl::OkStatus();
      });
  EXPECT_EQ(answered, status.ok() ? 3 : 0);
  return status;
}

// One attempt fails with an error of the connection that says this first.
void ExpectRefused(const std::string& target, ClientOptions options,
                   const std::string& words) {
  options.service_config_json = "{}";
  const absl::Status status = Call(target, options);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), StartsWith(words));
}

TEST(TlsTest, EmbedsOverAnEncryptedConnection) {
  const FakeEncoderService service(0, Encrypted());
  EXPECT_THAT(Call(service.target(), Trusting()), IsOk());
}

TEST(TlsTest, ShowsItsOwnCertificateWhereTheServerAsks) {
  FakeDoor door = Encrypted();
  door.asks_certificate = true;
  const FakeEncoderService service(0, door);
  EXPECT_THAT(Call(service.target(), Showing("client")), IsOk());
}

TEST(TlsTest, SaysThatAServerMayAskForACertificate) {
  FakeDoor door = Encrypted();
  door.asks_certificate = true;
  const FakeEncoderService service(0, door);
  const std::string words = absl::StrCat(
      service.target(),
      " closed the connection at once; if it requires a client certificate, "
      "set certificate_file and key_file to a pair that it trusts");
  ExpectRefused(service.target(), Trusting(), words);
  for (const char* certificate :
       {"foreign_client", "expired_client", "wrong_use_client"}) {
    ExpectRefused(service.target(), Showing(certificate), words);
  }
}

// With the retries and the balancing of every client. Where localhost is ::1
// too, nothing listens there.
TEST(TlsTest, SaysWhatTheServerOnLocalhostDid) {
  FakeDoor door = Encrypted();
  door.asks_certificate = true;
  const FakeEncoderService service(0, door);
  const std::string target = absl::StrCat("localhost:", service.port());
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(std::string(Call(target, Trusting()).message()),
                StartsWith(absl::StrCat(
                    target,
                    " closed the connection at once; if it requires a "
                    "client certificate")));
  }
  EXPECT_THAT(Call(target, Showing("client")), IsOk());
}

TEST(TlsTest, NamesAnAuthorityThatItDoesNotTrust) {
  const FakeEncoderService service(0, Encrypted());
  const std::string words = absl::StrCat("the certificate of ",
                                         service.target(), " is not trusted; ");
  ExpectRefused(service.target(), Trusting("foreign_ca"), words);
  ClientOptions of_the_system;
  of_the_system.tls = true;
  ExpectRefused(service.target(), of_the_system, words);
}

TEST(TlsTest, DoesNotTrustACertificateThatIsOutOfDate) {
  for (const char* certificate : {"expired", "future"}) {
    FakeDoor door = Encrypted();
    door.certificate = certificate;
    const FakeEncoderService service(0, door);
    // Which of its faults it is, not every gRPC says.
    ExpectRefused(service.target(), Trusting(),
                  absl::StrCat("the certificate of ", service.target(), " "));
  }
}

TEST(TlsTest, HoldsTheServerToItsName) {
  const FakeEncoderService service(0, Encrypted());
  ClientOptions options = Trusting();
  options.server_name = "localhost";
  EXPECT_THAT(Call(service.target(), options), IsOk());
  options.server_name = "encoderd.example";
  ExpectRefused(service.target(), options,
                absl::StrCat("the certificate of ", service.target(),
                             " is for another name; "));
}

TEST(TlsTest, SaysThatAServerSpeaksNoTls) {
  const FakeEncoderService service;
  ExpectRefused(service.target(), Trusting(),
                absl::StrCat(service.target(), " does not speak TLS; "));
}

TEST(TlsTest, NamesWhatIsWrongToWorkInBulkToo) {
  const FakeEncoderService service(0, Encrypted());
  const auto client = Client::Connect(service.target(), Trusting("foreign_ca"));
  ASSERT_THAT(client, IsOk());
  EXPECT_TRUE(GivenEnoughTime([&](absl::Duration time) {
    BulkOptions options;
    options.patience = time;
    const absl::Status status = EmbedInBulk(**client, options);
    return absl::StartsWith(
        status.message(), absl::StrCat("the certificate of ", service.target(),
                                       " is not trusted; "));
  }));
}

TEST(TlsTest, TriesAgainWhileAHandshakeFails) {
  const HeldPort port;
  FakeDoor wrong = Encrypted();
  wrong.certificate = "expired";
  auto service = std::make_unique<FakeEncoderService>(port.port(), wrong);
  const auto client = Client::Connect(service->target(), Trusting());
  ASSERT_THAT(client, IsOk());
  EXPECT_EQ((*client)->Health().status().code(),
            absl::StatusCode::kUnavailable);
  service.reset();
  service = std::make_unique<FakeEncoderService>(port.port(), Encrypted());
  EXPECT_TRUE(Eventually([&] { return (*client)->Embed({"one"}).ok(); }));
}

TEST(TlsTest, SaysThatAServerMayWantTls) {
  const FakeEncoderService service(0, Encrypted());
  ExpectRefused(service.target(), {},
                absl::StrCat(service.target(),
                             " closed the connection at once; if it expects "
                             "TLS, set tls or ca_file; if it has "));
}

TEST(TlsTest, SaysThatNoServerListens) {
  const HeldPort port;
  const absl::Status status =
      Call(absl::StrCat("127.0.0.1:", port.port()), Trusting());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("no server is listening at 127.0.0.1:"));
}

TEST(TlsTest, TakesCredentialsOfTheCallers) {
  const FakeEncoderService service(0, Encrypted());
  ClientOptions options;
  options.credentials = grpc::InsecureChannelCredentials();
  ExpectRefused(
      service.target(), options,
      absl::StrCat("no connection to ", service.target(), "; gRPC says: "));
  const HeldPort nobody;
  ExpectRefused(absl::StrCat("127.0.0.1:", nobody.port()), options,
                "no server is listening at 127.0.0.1:");
  const FakeEncoderService plain;
  EXPECT_THAT(Call(plain.target(), options), IsOk());
}

class TokenTest : public ::testing::TestWithParam<bool> {
 protected:
  TokenTest() {
    FakeDoor door = GetParam() ? Encrypted() : FakeDoor();
    door.token = "right-token";
    service_ = std::make_unique<FakeEncoderService>(0, door);
    if (GetParam()) options_ = Trusting();
  }

  std::unique_ptr<FakeEncoderService> service_;
  ClientOptions options_;
};

INSTANTIATE_TEST_SUITE_P(PlainAndEncrypted, TokenTest, ::testing::Bool());

TEST_P(TokenTest, TravelsWithEveryMethod) {
  options_.token = "right-token";
  const auto client = Client::Connect(service_->target(), options_);
  ASSERT_THAT(client, IsOk());
  EXPECT_THAT((*client)->Embed({"one"}), IsOk());
  EXPECT_THAT((*client)->Encode({"one"}), IsOk());
  EXPECT_THAT((*client)->Tokenize({"one"}), IsOk());
  EXPECT_THAT((*client)->Models(), IsOk());
  EXPECT_THAT((*client)->GetModel(), IsOk());
  EXPECT_THAT((*client)->InspectPositions(), IsOk());
  EXPECT_THAT((*client)->Health(), IsOk());
  EXPECT_THAT(EmbedInBulk(**client), IsOk());
  grpc::ClientContext context;
  v1::ListModelsResponse response;
  EXPECT_TRUE((*client)->stub()->ListModels(&context, {}, &response).ok());
}

TEST_P(TokenTest, IsAskedForOnceWhereItIsMissing) {
  const auto client = Client::Connect(service_->target(), options_);
  ASSERT_THAT(client, IsOk());
  const absl::Status status = (*client)->Embed({"one"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(GetErrorDetails(status)->reason, "BEARER_TOKEN_MISSING");
  EXPECT_EQ(service_->embed_calls(), 1);
  EXPECT_EQ(EmbedInBulk(**client).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT((*client)->Health(), IsOk());
}

TEST_P(TokenTest, IsRefusedOnceWhereItIsWrong) {
  options_.token = "wrong-token";
  const absl::Status status = Call(service_->target(), options_);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(GetErrorDetails(status)->reason, "BEARER_TOKEN_UNKNOWN");
  EXPECT_EQ(Describe(status).find("wrong-token"), std::string::npos);
  EXPECT_EQ(service_->embed_calls(), 1);
}

TEST_P(TokenTest, ComesFromAFile) {
  const TempFolder folder;
  folder.Write("token", " right-token\r\nsecond line\n");
  options_.token_file = folder.Path("token");
  EXPECT_THAT(Call(service_->target(), options_), IsOk());
}

// Remembers what the last check of health carried.
class HealthService : public grpc::health::v1::Health::Service {
 public:
  grpc::Status Check(grpc::ServerContext* context,
                     const grpc::health::v1::HealthCheckRequest*,
                     grpc::health::v1::HealthCheckResponse* response) override {
    for (const auto& [key, value] : context->client_metadata()) {
      if (key != "authorization") continue;
      seen.emplace_back(value.data(), value.size());
    }
    response->set_status(grpc::health::v1::HealthCheckResponse::SERVING);
    return grpc::Status::OK;
  }

  std::vector<std::string> seen;
};

TEST(TokenOfHealthTest, TravelsWithHealthChecksToo) {
  grpc::EnableDefaultHealthCheckService(false);
  HealthService health;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&health);
  const auto server = builder.BuildAndStart();
  ClientOptions options;
  options.token = "right-token";
  const auto client =
      Client::Connect(absl::StrCat("127.0.0.1:", port), options);
  ASSERT_THAT(client, IsOk());
  ASSERT_THAT((*client)->Health(), IsOk());
  server->Shutdown();
  EXPECT_EQ(health.seen, std::vector<std::string>{"Bearer right-token"});
}

// A variable of the environment, for as long as this lives.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { unsetenv(name_); }

 private:
  const char* const name_;
};

TEST(TokenAndProxyTest, KeepsAnUnencryptedTokenOnThisMachine) {
  FakeDoor door;
  door.token = "right-token";
  const FakeEncoderService service(0, door);
  const HeldPort nobody;
  const ScopedVariable proxy("grpc_proxy",
                             absl::StrCat("http://127.0.0.1:", nobody.port()));
  const ScopedVariable no_exception("no_grpc_proxy", "");
  ClientOptions options;
  options.token = "right-token";
  EXPECT_THAT(Call(service.target(), options), IsOk());
}

TEST(ProxyTest, DialsThisMachineWithoutAProxy) {
  const FakeEncoderService service;
  const HeldPort nobody;
  const std::string at = absl::StrCat("http://127.0.0.1:", nobody.port());
  const ScopedVariable no_exception("no_grpc_proxy", "");
  const std::string port =
      service.target().substr(service.target().rfind(':') + 1);
  for (const char* const variable :
       {"grpc_proxy", "https_proxy", "http_proxy"}) {
    const ScopedVariable proxy(variable, at);
    for (const std::string& target :
         {service.target(), absl::StrCat("localhost:", port),
          absl::StrCat("dns:///127.0.0.1:", port)}) {
      EXPECT_THAT(Call(target, {}), IsOk()) << variable << " " << target;
      ClientOptions own;
      own.credentials = grpc::InsecureChannelCredentials();
      EXPECT_THAT(Call(target, own), IsOk()) << variable << " " << target;
    }
  }
}

}  // namespace
}  // namespace encoderd::client
