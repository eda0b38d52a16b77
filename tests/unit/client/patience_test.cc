// EmbedBulk: what it says of a server that does not answer.
#include "client/cpp/patience.h"

#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cpp/client.h"
#include "client/cpp/steady_time.h"
#include "encoderd/v1/encoder.grpc.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "gtest/gtest.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/held_port.h"
#include "tests/support/patience.h"

namespace encoderd::client {
namespace {

using encoderd::testing::FakeEncoderService;
using encoderd::testing::FakeError;
using Stream = grpc::ServerReaderWriter<v1::EmbedResponse, v1::EmbedRequest>;

// The error of a job of two requests of one text each.
absl::Status ErrorOf(const std::string& target, absl::Duration patience,
                     std::function<bool()> stop = nullptr) {
  const auto client = Client::Connect(target);
  EXPECT_TRUE(client.ok()) << client.status();
  BulkOptions options;
  options.texts_per_call = 1;
  options.patience = patience;
  options.stop = std::move(stop);
  int given = 0;
  const absl::Status status = (*client)->EmbedBulk(
      {[&](v1::Input* input, absl::Status*) {
        input->set_text("~~never answered");
        return given++ < 2;
      }},
      {}, options, [](const BulkAnswer&) { return absl::OkStatus(); });
  EXPECT_FALSE(status.ok());
  return status;
}

TEST(PatienceTest, SaysThatNoServerListens) {
  const HeldPort port;
  const std::string target = absl::StrCat("127.0.0.1:", port.port());
  EXPECT_TRUE(GivenEnoughTime([&](absl::Duration time) {
    const absl::Status status = ErrorOf(target, time);
    // The health service was asked for too short a time.
    if (absl::IsDeadlineExceeded(status)) return false;
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(status.message(),
              absl::StrCat("no server is listening at ", target,
                           "; start encoderd there, or correct the target"));
    return true;
  }));
}

// The first stream waits for it, and has no error to tell.
TEST(PatienceTest, SaysNothingElseOfAServerThatCameLaterAndIsSilent) {
  EXPECT_TRUE(GivenEnoughTime([](absl::Duration time) {
    const HeldPort port;
    std::unique_ptr<FakeEncoderService> service;
    const absl::Time start = SteadyNow();
    const auto come_later = [&] {
      if (service == nullptr && SteadyNow() - start > time / 8) {
        service = std::make_unique<FakeEncoderService>(port.port());
      }
      return false;
    };
    const absl::Status status =
        ErrorOf(absl::StrCat("127.0.0.1:", port.port()), time, come_later);
    // Where there was no connection yet, the error says so.
    return absl::IsDeadlineExceeded(status);
  }));
}

// An encoder, or a proxy of one, whose health service has no connection.
class Unhealthy : public v1::Encoder::Service {
 public:
  // embed: what streams do.
  explicit Unhealthy(std::function<grpc::Status(Stream*)> embed)
      : embed_(std::move(embed)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    builder.RegisterService(&health_);
    // Other tests of this program enable gRPC's own health service.
    builder.SetOption(
        std::make_unique<grpc::HealthCheckServiceServerBuilderOption>(nullptr));
    server_ = builder.BuildAndStart();
  }
  ~Unhealthy() override { server_->Shutdown(); }

  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }

  grpc::Status EmbedStream(grpc::ServerContext*, Stream* stream) override {
    return embed_(stream);
  }

 private:
  class Health : public grpc::health::v1::Health::Service {
    grpc::Status Check(grpc::ServerContext*,
                       const grpc::health::v1::HealthCheckRequest*,
                       grpc::health::v1::HealthCheckResponse*) override {
      return {grpc::StatusCode::UNAVAILABLE, "nobody is there"};
    }
  };

  const std::function<grpc::Status(Stream*)> embed_;
  int port_ = 0;
  Health health_;
  std::unique_ptr<grpc::Server> server_;
};

grpc::Status Silent(Stream* stream) {
  v1::EmbedRequest request;
  while (stream->Read(&request)) {
  }
  return grpc::Status::OK;
}

grpc::Status Lost(Stream*) { return {grpc::StatusCode::UNAVAILABLE, "lost"}; }

grpc::Status Leaves(Stream*) {
  return FakeError(grpc::StatusCode::UNAVAILABLE, "the server leaves",
                   "DRAINING", {});
}

// Whether some time is enough for the job to end with these words.
bool EndsWith(const std::string& target, absl::string_view words) {
  return GivenEnoughTime([&](absl::Duration time) {
    return absl::StartsWith(ErrorOf(target, time).message(), words);
  });
}

TEST(PatienceTest, AsksTheHealthServiceWhyAStreamIsSilent) {
  const Unhealthy silent(Silent);
  EXPECT_TRUE(EndsWith(silent.target(), "nobody is there"));
}

TEST(PatienceTest, AsksTheHealthServiceWhyAStreamWasLost) {
  const Unhealthy loses(Lost);
  EXPECT_TRUE(EndsWith(loses.target(), "nobody is there"));
}

TEST(PatienceTest, DoesNotReplaceWhatTheServerSaid) {
  const Unhealthy leaves(Leaves);
  EXPECT_TRUE(EndsWith(leaves.target(), "the server leaves"));
}

TEST(PatienceTest, AStreamThatHasAnsweredIsNotGone) {
  const Unhealthy answers_once([](Stream* stream) {
    v1::EmbedRequest request;
    v1::EmbedResponse response;
    stream->Read(&request);
    response.set_request_id(request.request_id());
    response.add_embeddings();
    stream->Write(response);
    return Silent(stream);
  });
  EXPECT_TRUE(
      EndsWith(answers_once.target(), "no response from the server for "));
}

}  // namespace
}  // namespace encoderd::client
