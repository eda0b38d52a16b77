// Bearer tokens: who is let in, by which method, how much each may have, and
// tokens that are replaced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/security/credentials.h"
#include "server/base/steady_time.h"
#include "tests/support/patience.h"
#include "tests/support/raw_http2.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using ::testing::HasSubstr;
using ::testing::Not;

// SHA-256 of "alpha" and of "beta".
constexpr char kAlpha[] =
    "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8";
constexpr char kBeta[] =
    "f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753";

class TokenTest : public ::testing::Test {
 protected:
  TokenTest() { folder_.Write("tokens", absl::StrCat("search ", kAlpha)); }

  void Start() {
    config_.bearer_token_file = folder_.Path("tokens");
    server_ = std::make_unique<TestServer>(FakeModelOptions(), config_);
  }
  void UseTokens(const std::string& text) {
    folder_.Write("tokens", text);
    server_->server().ReloadSecrets();
  }

  // The context of a call with the metadata `authorization`; empty: without.
  static std::unique_ptr<grpc::ClientContext> Context(
      const std::string& authorization) {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    if (!authorization.empty()) {
      context->AddMetadata("authorization", authorization);
    }
    return context;
  }
  grpc::Status Embed(const std::string& authorization,
                     const std::string& text = "hello") {
    v1::EmbedResponse response;
    return server_->stub().Embed(Context(authorization).get(),
                                 TextRequest({text}), &response);
  }
  grpc::Status Check(const std::string& authorization) {
    HealthCheckResponse response;
    return Health::NewStub(server_->channel())
        ->Check(Context(authorization).get(), HealthCheckRequest(), &response);
  }
  double Rejections(const std::string& reason) {
    return TestServer::Sample(
        server_->MetricsText(),
        absl::StrCat("encoderd_rejections_total{model=\"\",reason=\"", reason,
                     "\"}"));
  }
  // Calls with RESOURCE_EXHAUSTED: by limits of the callers' own, and others.
  std::pair<double, double> Refusals() {
    const std::string text = server_->MetricsText();
    const auto count = [&](absl::string_view outcome) {
      return TestServer::Sample(
          text, absl::StrCat("encoderd_requests_total{code=\"RESOURCE_EXHAUSTED"
                             "\",outcome=\"",
                             outcome, "\"}"));
    };
    return {count("invalid"), count("refused")};
  }

  TempFolder folder_;
  ServerConfig config_ = TestConfig();
  std::unique_ptr<TestServer> server_;
};

TEST_F(TokenTest, AKnownTokenLetsIn) {
  Start();
  EXPECT_TRUE(Embed("Bearer alpha").ok());
  EXPECT_TRUE(Embed("bearer   alpha ").ok());
}

TEST_F(TokenTest, OthersAreRefusedByNameAndCounted) {
  Start();
  const std::pair<std::string, std::string> kCases[] = {
      {"", "BEARER_TOKEN_MISSING"},
      {"alpha", "BEARER_TOKEN_MISSING"},
      {"Basic alpha", "BEARER_TOKEN_MISSING"},
      {"Bearer", "BEARER_TOKEN_MISSING"},
      {"Bearer  ", "BEARER_TOKEN_MISSING"},
      {"Bearer alphabet", "BEARER_TOKEN_UNKNOWN"},
      {"Bearer ALPHA", "BEARER_TOKEN_UNKNOWN"},
      {absl::StrCat("Bearer ", std::string(5000, 'a')), "BEARER_TOKEN_UNKNOWN"},
  };
  for (const auto& [authorization, reason] : kCases) {
    const double before = Rejections(reason);
    const RpcError error = ReadError(Embed(authorization));
    EXPECT_EQ(error.code, grpc::StatusCode::UNAUTHENTICATED) << authorization;
    EXPECT_EQ(error.reason, reason) << authorization;
    EXPECT_FALSE(error.retry_delay.has_value());
    EXPECT_EQ(Rejections(reason), before + 1) << authorization;
  }
  EXPECT_TRUE(Embed("Bearer alpha").ok());
}

// The file then has the token itself: its callers are refused, and the operator
// is told once per minute. No other test may send what the file has, because
// the minute is the process's.
TEST_F(TokenTest, ATokenThatTheFileHasInClearIsRefusedAndLoggedOnceByName) {
  Start();
  ::testing::internal::CaptureStderr();
  const absl::Time begun = SteadyNow();
  for (int i = 0; i < 3; ++i) {
    const RpcError error = ReadError(Embed(absl::StrCat("Bearer ", kAlpha)));
    EXPECT_EQ(error.code, grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(error.reason, "BEARER_TOKEN_UNKNOWN");
    EXPECT_FALSE(error.retry_delay.has_value());
    EXPECT_EQ(Rejections("BEARER_TOKEN_UNKNOWN"), i + 1);
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  const int64_t minutes = absl::ToInt64Minutes(SteadyNow() - begun);
  EXPECT_THAT(log, HasSubstr(" level=warning event=token_in_clear name=search "
                             "message="));
  EXPECT_THAT(log, Not(HasSubstr(kAlpha)));
  const std::vector<std::string> around = absl::StrSplit(log, "token_in_clear");
  EXPECT_LE(std::ssize(around) - 1, 1 + minutes);
}

// A proxy that adds its own must not lose to the caller's, nor win by place.
TEST_F(TokenTest, TwoValuesAreRefusedEvenIfBothAreKnown) {
  Start();
  const auto context = Context("Bearer alpha");
  context->AddMetadata("authorization", "Bearer beta");
  v1::EmbedResponse response;
  const RpcError error = ReadError(
      server_->stub().Embed(context.get(), TextRequest({"a"}), &response));
  EXPECT_EQ(error.code, grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(error.reason, "BEARER_TOKEN_UNKNOWN");
  EXPECT_THAT(error.message, HasSubstr("several values"));
}

TEST_F(TokenTest, EveryMethodNeedsOne) {
  Start();
  for (const char* method : {"Embed", "Encode", "Tokenize", "ListModels",
                             "GetModel", "InspectPositions"}) {
    EXPECT_EQ(ReadError(server_->CallRaw(method, "")).reason,
              "BEARER_TOKEN_MISSING")
        << method;
  }
  auto context = Context("Bearer beta");
  const auto stream = server_->stub().EmbedStream(context.get());
  v1::EmbedResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(ReadError(stream->Finish()).reason, "BEARER_TOKEN_UNKNOWN");
  EXPECT_EQ(Rejections("BEARER_TOKEN_UNKNOWN"), 1);
}

// A token that was on its way when the connection broke is not missing.
TEST_F(TokenTest, AStreamWhoseHeadersAreCutShortIsNotRefused) {
  Start();
  RawHttp2 broken(server_->server().grpc_port());
  broken.CutHeadersOf("/encoderd.v1.Encoder/EmbedStream");
  EXPECT_TRUE(Eventually([&] {
    return TestServer::Sample(
               server_->MetricsText(),
               "encoderd_requests_total{code=\"CANCELLED\",method="
               "\"EmbedStream\"}") == 1;
  }));
  EXPECT_EQ(Rejections("BEARER_TOKEN_MISSING"), 0);
  // A caller who stays is.
  const auto context = Context("");
  const auto stream = server_->stub().EmbedStream(context.get());
  EXPECT_EQ(ReadError(stream->Finish()).reason, "BEARER_TOKEN_MISSING");
  EXPECT_TRUE(
      Eventually([&] { return Rejections("BEARER_TOKEN_MISSING") == 1; }));
}

// Before anything is told of the server's state.
TEST_F(TokenTest, ItIsAskedForBeforeAllElse) {
  config_.bearer_token_file = folder_.Path("tokens");
  TestServer server(TestServer::NotLoaded(), {}, config_);
  v1::EmbedResponse response;
  EXPECT_EQ(ReadError(server.Embed(TextRequest({"x"}), &response)).reason,
            "BEARER_TOKEN_MISSING");
}

TEST_F(TokenTest, HealthIsOpenUnlessItIsClosed) {
  Start();
  EXPECT_TRUE(Check("").ok());
  config_.health_needs_token = true;
  Start();
  EXPECT_EQ(ReadError(Check("")).reason, "BEARER_TOKEN_MISSING");
  EXPECT_TRUE(Check("Bearer alpha").ok());
  auto context = Context("Bearer beta");
  const auto watch = Health::NewStub(server_->channel())
                         ->Watch(context.get(), HealthCheckRequest());
  HealthCheckResponse response;
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(ReadError(watch->Finish()).reason, "BEARER_TOKEN_UNKNOWN");
}

TEST_F(TokenTest, ReflectionIsOff) {
  Start();
  EXPECT_EQ(server_
                ->CallRaw("/grpc.reflection.v1alpha.ServerReflection/"
                          "ServerReflectionInfo",
                          "")
                .error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(TokenTest, TakenAwayATokenIsRefusedFromTheNextCallOn) {
  Start();
  EXPECT_TRUE(Embed("Bearer alpha").ok());
  UseTokens(absl::StrCat("crawler ", kBeta));
  EXPECT_EQ(ReadError(Embed("Bearer alpha")).reason, "BEARER_TOKEN_UNKNOWN");
  EXPECT_TRUE(Embed("Bearer beta").ok());
  UseTokens("broken");
  EXPECT_TRUE(Embed("Bearer beta").ok());
  EXPECT_EQ(TestServer::Sample(
                server_->MetricsText(),
                "encoderd_secret_reload_failing{what=\"bearer_tokens\"}"),
            1);
}

// Limits of one token leave room for the others.
TEST_F(TokenTest, ATokenHasNoMoreCallsThanItMay) {
  folder_.Write("tokens",
                absl::StrCat("search ", kAlpha, " max_calls=1\nx ", kBeta));
  Start();
  auto held_context = Context("Bearer alpha");
  const auto held = server_->stub().EmbedStream(held_context.get());
  EXPECT_TRUE(Eventually([&] { return server_->server().streams() == 1; }));
  const RpcError error = ReadError(Embed("Bearer alpha"));
  EXPECT_EQ(error.code, grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(error.reason, "QUEUE_FULL");
  EXPECT_EQ(error.metadata.at("queued_calls"), "1");
  EXPECT_TRUE(error.retry_delay.has_value());
  EXPECT_EQ(Refusals(), std::make_pair(1.0, 0.0));
  auto refused_context = Context("Bearer alpha");
  const auto refused = server_->stub().EmbedStream(refused_context.get());
  EXPECT_EQ(ReadError(refused->Finish()).reason, "QUEUE_FULL");
  EXPECT_EQ(refused_context->GetServerTrailingMetadata().count(
                "grpc-retry-pushback-ms"),
            1);
  EXPECT_TRUE(Embed("Bearer beta").ok());
  held->WritesDone();
  EXPECT_TRUE(held->Finish().ok());
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(Embed("Bearer alpha").ok()) << i;
  }
}

// It may call again as soon as it knows that its stream is over.
TEST_F(TokenTest, AStreamLeavesItsPlaceBeforeItsEndIsKnown) {
  folder_.Write("tokens", absl::StrCat("search ", kAlpha, " max_calls=1"));
  Start();
  for (int i = 0; i < 1000; ++i) {
    auto context = Context("Bearer alpha");
    const auto stream = server_->stub().EmbedStream(context.get());
    stream->WritesDone();
    ASSERT_TRUE(stream->Finish().ok()) << i;
  }
}

TEST_F(TokenTest, AStreamEndsWhenItsTokenIsTakenAway) {
  Start();
  auto context = Context("Bearer alpha");
  const auto stream = server_->stub().EmbedStream(context.get());
  v1::EmbedRequest request = TextRequest({"x"});
  request.set_request_id("1");
  v1::EmbedResponse response;
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_FALSE(response.has_error());
  UseTokens(absl::StrCat("crawler ", kBeta));
  request.set_request_id("2");
  ASSERT_TRUE(stream->Write(request));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(ReadError(stream->Finish()).reason, "BEARER_TOKEN_UNKNOWN");
}

TEST_F(TokenTest, ALimitThatIsReloadedHoldsForOpenStreams) {
  Start();
  auto context = Context("Bearer alpha");
  const auto stream = server_->stub().EmbedStream(context.get());
  v1::EmbedRequest request = TextRequest({Letters(13)});
  v1::EmbedResponse response;
  for (const char* const limit : {"", " max_queue_tokens=12", ""}) {
    UseTokens(absl::StrCat("search ", kAlpha, limit));
    request.set_request_id(absl::StrCat("with", limit));
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&response));
    ASSERT_EQ(response.has_error(), *limit != '\0') << limit;
    if (!response.has_error()) continue;
    const RpcError error = ReadError(response.error());
    EXPECT_EQ(error.reason, "REQUEST_TOO_LARGE");
    EXPECT_EQ(error.metadata.at("limit"), "12");
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(TokenTest, ATokenHasNoMoreOfTheQueueThanItMay) {
  folder_.Write("tokens", absl::StrCat("search ", kAlpha,
                                       " max_queue_tokens=12\nx ", kBeta));
  Start();
  server_->model().device().CloseGate();
  const RpcError too_large = ReadError(Embed("Bearer alpha", Letters(13)));
  EXPECT_EQ(too_large.reason, "REQUEST_TOO_LARGE");
  EXPECT_EQ(too_large.metadata.at("limit"), "12");
  std::thread first(
      [&] { EXPECT_TRUE(Embed("Bearer alpha", Letters(8)).ok()); });
  EXPECT_TRUE(Eventually([&] {
    return TestServer::Sample(server_->MetricsText(),
                              "encoderd_admitted_tokens") == 8;
  }));
  const RpcError full = ReadError(Embed("Bearer alpha", Letters(6)));
  EXPECT_EQ(full.reason, "QUEUE_FULL");
  EXPECT_EQ(full.metadata.at("queued_tokens"), "8");
  EXPECT_EQ(full.metadata.at("limit"), "12");
  EXPECT_EQ(Refusals(), std::make_pair(1.0, 0.0));
  std::thread other(
      [&] { EXPECT_TRUE(Embed("Bearer beta", Letters(20)).ok()); });
  server_->model().device().OpenGate();
  first.join();
  other.join();
  EXPECT_TRUE(Embed("Bearer alpha", Letters(12)).ok());
}

}  // namespace
}  // namespace encoderd
