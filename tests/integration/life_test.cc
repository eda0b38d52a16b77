// Loading, health, draining and HTTP of a server in this process.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/cgroup.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/create_channel.h"
#include "tests/support/loopback.h"
#include "tests/support/patience.h"
#include "tests/support/raw_http2.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

grpc::Status Check(TestServer* server, const std::string& name,
                   HealthCheckResponse::ServingStatus* status) {
  grpc::ClientContext context;
  HealthCheckRequest request;
  request.set_service(name);
  HealthCheckResponse response;
  const grpc::Status rpc =
      Health::NewStub(server->channel())->Check(&context, request, &response);
  *status = response.status();
  return rpc;
}

TEST(LifeTest, AnswersBeforeTheModelIsLoaded) {
  TestServer server(TestServer::NotLoaded(), {});
  HealthCheckResponse::ServingStatus health;
  for (const char* name : {"", "encoderd.v1.Encoder", "readiness"}) {
    ASSERT_TRUE(Check(&server, name, &health).ok()) << name;
    EXPECT_EQ(health, HealthCheckResponse::NOT_SERVING) << name;
  }
  EXPECT_EQ(server.Get("/readyz").first, 503);
  EXPECT_EQ(server.Get("/healthz").first, 200);
  v1::EmbedResponse response;
  const RpcError error = ReadError(server.Embed(TextRequest({"x"}), &response));
  EXPECT_EQ(error.code, grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(error.reason, "LOADING");
  EXPECT_TRUE(error.retry_delay.has_value());

  ASSERT_TRUE(server.Load().ok());
  for (const char* name : {"", "encoderd.v1.Encoder", "readiness"}) {
    ASSERT_TRUE(Check(&server, name, &health).ok()) << name;
    EXPECT_EQ(health, HealthCheckResponse::SERVING) << name;
  }
  EXPECT_EQ(server.Get("/readyz").first, 200);
  EXPECT_TRUE(server.Embed(TextRequest({"x"}), &response).ok());
}

TEST(LifeTest, WhatThrowsWhileLoadingIsANamedFailureOfStart) {
  TestServer server(TestServer::NotLoaded(), {});
  absl::Status status = server.server().Load(
      [](const std::string&,
         const ModelOptions&) -> absl::StatusOr<std::shared_ptr<const Model>> {
        throw std::runtime_error("a surprise");
      },
      kNoMemoryLimit);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(), "model 'fake': exception: a surprise");
  EXPECT_FALSE(server.server().serving());

  // The tokenizer's threads cannot be had.
  std::shared_ptr<FakeModel> model;
  status = server.server().Load(
      [&](const std::string&, const ModelOptions& options)
          -> absl::StatusOr<std::shared_ptr<const Model>> {
        model = *FakeModel::Load({}, options);
        model->fake_tokenizer().ThrowForScratch();
        return model;
      },
      kNoMemoryLimit);
  EXPECT_EQ(status.message(), "model 'fake': exception: no scratch");
  EXPECT_FALSE(server.server().serving());
}

TEST(LifeTest, FewerThreadsThanCardsIsANamedFailureOfStart) {
  ServerConfig config = TestConfig();
  config.device = "cuda:0,cuda:1";
  FakeModelOptions two_cards;
  two_cards.sessions = 4;
  two_cards.least_sessions = 2;
  config.threads = 1;
  TestServer idle_card(TestServer::NotLoaded(), two_cards, config);
  const absl::Status status = idle_card.Load();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "model 'fake': --threads=1: the 2 GPUs of "
            "--device=cuda:0,cuda:1 need one thread each");
  config.threads = 2;
  TestServer busy_cards(TestServer::NotLoaded(), two_cards, config);
  EXPECT_TRUE(busy_cards.Load().ok());
}

TEST(LifeTest, HealthOfAnUnknownServiceNamesThoseThatItKnows) {
  TestServer server;
  HealthCheckResponse::ServingStatus health;
  const RpcError error = ReadError(Check(&server, "nope", &health));
  EXPECT_EQ(error.code, grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(error.message,
            "no service 'nope'; available: '' (the whole server), "
            "'encoderd.v1.Encoder', 'readiness'");
}

TEST(LifeTest, MoreWatchesThanMaxStreamsAreRefused) {
  ServerConfig config = TestConfig();
  config.max_streams = 2;
  TestServer server(FakeModelOptions(), config);
  const auto health = Health::NewStub(server.channel());
  grpc::ClientContext contexts[3];
  std::vector<std::unique_ptr<grpc::ClientReader<HealthCheckResponse>>> watches;
  HealthCheckResponse response;
  for (int i = 0; i < 2; ++i) {
    watches.push_back(health->Watch(&contexts[i], {}));
    EXPECT_TRUE(watches.back()->Read(&response));
  }
  const auto third = health->Watch(&contexts[2], {});
  EXPECT_FALSE(third->Read(&response));
  const RpcError error = ReadError(third->Finish());
  EXPECT_EQ(error.code, grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(error.reason, "QUEUE_FULL");
  EXPECT_EQ(error.metadata.at("limit"), "2");
  for (grpc::ClientContext& context : contexts) context.TryCancel();
}

TEST(LifeTest, AWatchSeesEveryChangeAndDoesNotHoldUpLeaving) {
  EXPECT_TRUE(GivenEnoughTime([](absl::Duration time) {
    ServerConfig config = TestConfig();
    config.drain_delay = time;
    TestServer server(TestServer::NotLoaded(), {}, config);
    grpc::ClientContext context;
    auto watch = Health::NewStub(server.channel())->Watch(&context, {});
    HealthCheckResponse response;
    EXPECT_TRUE(watch->Read(&response));
    EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
    EXPECT_TRUE(server.Load().ok());
    EXPECT_TRUE(watch->Read(&response));
    EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);

    std::thread drain([&] { EXPECT_TRUE(server.server().Drain()); });
    EXPECT_TRUE(watch->Read(&response));
    EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
    // Told first: work is still taken for drain_delay.
    v1::EmbedResponse embedded;
    const bool taken = server.Embed(TextRequest({"x"}), &embedded).ok();
    EXPECT_FALSE(watch->Read(&response));
    EXPECT_EQ(ReadError(watch->Finish()).reason, "DRAINING");
    drain.join();
    return taken;
  }));
}

TEST(LifeTest, DrainingAnswersWhatWasAcceptedAndRefusesTheRest) {
  TestServer server;
  server.model().device().CloseGate();
  std::vector<std::thread> calls;
  std::atomic<int> answered{0};
  for (int i = 0; i < 20; ++i) {
    calls.emplace_back([&] {
      v1::EmbedResponse response;
      if (server.Embed(TextRequest({"accepted"}), &response).ok()) ++answered;
    });
  }
  // In flight they are before they are accepted.
  ASSERT_TRUE(Eventually([&] {
    return TestServer::Sample(server.MetricsText(),
                              "encoderd_admitted_tokens") == 20 * 10;
  }));
  std::thread drain([&] { EXPECT_TRUE(server.server().Drain()); });
  grpc::Status refused;
  do {
    refused = server.CallRaw("ListModels", "");
  } while (refused.ok());
  const RpcError error = ReadError(refused);
  EXPECT_EQ(error.code, grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(error.reason, "DRAINING");
  EXPECT_TRUE(error.retry_delay.has_value());
  server.model().device().OpenGate();
  drain.join();
  for (std::thread& call : calls) call.join();
  EXPECT_EQ(answered, 20);
  EXPECT_EQ(server.server().in_flight(), 0);
}

TEST(LifeTest, TheSecondServerOnAPortFails) {
  TestServer first;
  ServerConfig config = TestConfig();
  config.listen = absl::StrCat("127.0.0.1:", first.server().grpc_port());
  EXPECT_EQ(Server::Start(config, nullptr).status().code(),
            absl::StatusCode::kUnavailable);
  config = TestConfig();
  config.http_listen = absl::StrCat("127.0.0.1:", first.server().http_port());
  EXPECT_EQ(Server::Start(config, nullptr).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(LifeTest, AConnectionBeyondTheCapWaitsForAnother) {
  ServerConfig config = TestConfig();
  config.max_connections = 1;
  TestServer server({}, config);
  v1::EmbedResponse response;
  ASSERT_TRUE(server.Embed(TextRequest({"first"}), &response).ok());
  EXPECT_EQ(server.server().connections(), 1);

  auto second = v1::Encoder::NewStub(server.NewChannel());
  grpc::ClientContext soon;
  soon.set_deadline(absl::ToChronoTime(absl::Now() + absl::Milliseconds(300)));
  EXPECT_EQ(second->Embed(&soon, TextRequest({"x"}), &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(server.Embed(TextRequest({"first"}), &response).ok());
  EXPECT_EQ(server.server().connections(), 1);

  server.Disconnect();
  grpc::ClientContext later;
  later.set_wait_for_ready(true);
  later.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  EXPECT_TRUE(second->Embed(&later, TextRequest({"x"}), &response).ok());
}

TEST(LifeTest, AConnectionThatEndsMakesRoomForOneThatWaits) {
  ServerConfig config = TestConfig();
  config.max_connections = 1;
  TestServer server({}, config);
  v1::EmbedResponse response;
  ASSERT_TRUE(server.Embed(TextRequest({"first"}), &response).ok());
  const int port = server.server().grpc_port();
  std::optional<RawHttp2> second(std::in_place, port);
  RawHttp2 third(port);  // waits behind it
  server.Disconnect();
  ASSERT_TRUE(second->ReadUntil(RawHttp2::kSettings));
  EXPECT_EQ(server.server().connections(), 1);
  second.reset();
  ASSERT_TRUE(third.ReadUntil(RawHttp2::kSettings));
  EXPECT_EQ(server.server().connections(), 1);
}

// Asks for a page, and takes no notice of a server that goes away meanwhile.
void Scrape(int port) {
  const int fd = NewTcpSocket();
  constexpr absl::string_view kRequest =
      "GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n";
  char buffer[4096];
  if (ConnectLoopback(fd, port) &&
      send(fd, kRequest.data(), kRequest.size(), MSG_NOSIGNAL) > 0) {
    while (read(fd, buffer, sizeof(buffer)) > 0) {
    }
  }
  close(fd);
}

// As where a model cannot be loaded.
TEST(HttpTest, ScrapesWhileAServerEndsWithoutDrainingHarmNothing) {
  for (int round = 0; round < 10; ++round) {
    auto server = Server::Start(TestConfig(), nullptr);
    ASSERT_TRUE(server.ok()) << server.status();
    const int port = (*server)->http_port();
    std::atomic<bool> ended{false};
    std::atomic<int> pages{0};
    std::vector<std::thread> scrapers;
    for (int i = 0; i < 3; ++i) {
      scrapers.emplace_back([&] {
        while (!ended) {
          Scrape(port);
          ++pages;
        }
      });
    }
    while (pages < 3) absl::SleepFor(absl::Milliseconds(1));
    server->reset();
    ended = true;
    for (std::thread& scraper : scrapers) scraper.join();
  }
}

TEST(HttpTest, OnlyThreePathsAndOnlyReading) {
  TestServer server;
  EXPECT_EQ(server.Get("/").first, 404);
  EXPECT_EQ(server.Get("/etc/passwd").first, 404);
  EXPECT_EQ(server.Get("/metrics/").first, 404);
  EXPECT_EQ(server.Get("/metrics").first, 200);
}

}  // namespace
}  // namespace encoderd
