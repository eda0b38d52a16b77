// What /metrics says of a server in this process, against what its callers and
// its device know.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/base/steady_time.h"
#include "tests/integration/stream_client.h"
#include "tests/integration/tally.h"
#include "tests/support/patience.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

ServerConfig TwoModels() {
  ServerConfig config = TestConfig();
  config.models = {{"one", "one"}, {"two", "two"}};
  config.max_queue_tokens = 512;
  return config;
}

// Calls of `server` that are counted as they end.
class Caller {
 public:
  Caller(TestServer* server, Tally* tally) : server_(*server), tally_(*tally) {}

  // counted: the model that the call is counted for.
  grpc::Status Embed(const std::string& model, const std::string& counted,
                     const v1::EmbedRequest& texts) {
    v1::EmbedRequest request = texts;
    request.set_model(model);
    v1::EmbedResponse response;
    const grpc::Status status = server_.Embed(request, &response);
    tally_.Add("Embed", counted, status);
    Answered(counted, response);
    return status;
  }

  void Answered(const std::string& counted, const v1::EmbedResponse& response) {
    tally_.AddTokens(counted, response.usage().tokens());
    for (const v1::Embedding& embedding : response.embeddings()) {
      if (embedding.has_error()) {
        tally_.AddInput(counted, ReadError(embedding.error()).reason);
      }
    }
  }

  // Any method, any bytes.
  void Raw(const std::string& method, const std::string& counted,
           const std::string& bytes) {
    tally_.Add(method, counted, server_.CallRaw(method, bytes));
  }

  // One of each kind that needs nothing of the device.
  void Everything() {
    Embed("", "one", TextRequest({"by default"}));
    Embed("two", "two", TextRequest({"a", "bc"}));
    Embed("three", "", TextRequest({"nobody's"}));
    Embed("two", "two", TextRequest({Letters(400)}));
    v1::EmbedRequest option = TextRequest({"x"});
    option.mutable_options()->set_dimensions(1000);
    Embed("one", "one", option);
    v1::EmbedRequest some = TextRequest({"fine", "", Letters(400)});
    some.mutable_options()->set_on_error(v1::ON_ERROR_PER_INPUT);
    Embed("two", "two", some);
    Raw("Tokenize", "", "\xFF");
    Raw("ListModels", "", "");
    v1::TokenizeRequest tokenize;
    tokenize.add_inputs()->set_text("only ids");
    Raw("Tokenize", "one", tokenize.SerializeAsString());
    v1::GetModelRequest get;
    Raw("GetModel", "one", get.SerializeAsString());
    get.set_model("three");
    Raw("GetModel", "", get.SerializeAsString());
    v1::InspectPositionsRequest inspect;
    inspect.set_model("two");
    inspect.set_first_row(1 << 20);
    Raw("InspectPositions", "two", inspect.SerializeAsString());
    v1::EncodeRequest encode;
    encode.add_inputs()->set_text("states");
    encode.set_layer(99);
    Raw("Encode", "one", encode.SerializeAsString());
  }

  // A stream of an answer, a request without an id and one of no model.
  void OneStream() {
    Stream stream(&server_);
    v1::EmbedRequest request = Request("ok", {"streamed"});
    request.set_model("two");
    EXPECT_TRUE(stream.Write(request));
    EXPECT_TRUE(stream.Write(Request("", {"x"})));
    request = Request("three", {"x"});
    request.set_model("three");
    EXPECT_TRUE(stream.Write(request));
    stream.HalfClose();
    for (const auto& [id, answer] : stream.ReadAll()) {
      const std::string counted = id == "ok" ? "two" : id.empty() ? "one" : "";
      tally_.Add("EmbedStream", counted,
                 answer.has_error()
                     ? grpc::Status(
                           static_cast<grpc::StatusCode>(answer.error().code()),
                           answer.error().message(),
                           answer.error().SerializeAsString())
                     : grpc::Status::OK);
      Answered(counted, answer);
    }
    EXPECT_TRUE(stream.Finish().ok());
  }

 private:
  TestServer& server_;
  Tally& tally_;
};

TEST(MetricsTest, EverySeriesIsThereFromTheFirstScrapeAndCallsAtZero) {
  TestServer server(TestServer::NotLoaded(), {});
  const std::string text = server.MetricsText();
  std::map<std::string, int> series;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "#")) continue;
    ++series[std::string(line.substr(0, line.find_first_of("{ ")))];
    if (absl::StartsWith(line, "process_cpu_seconds_total")) continue;
    if (absl::StartsWith(line, "process_") ||
        absl::StartsWith(line, "encoderd_build_info") ||
        absl::StartsWith(line, "encoderd_connections_limit") ||
        absl::StartsWith(line, "encoderd_state{state=\"loading\"}")) {
      EXPECT_FALSE(absl::EndsWith(line, " 0")) << line;
    } else {
      EXPECT_TRUE(absl::EndsWith(line, " 0")) << line;
    }
  }
  // A histogram counts as one, by its _count.
  int all = 0;
  for (const auto& [name, count] : series) {
    all += count;
    if (absl::EndsWith(name, "_bucket")) continue;
    EXPECT_LE(count, 110) << name;
  }
  EXPECT_LE(all, 4000);  // what a scrape of one model costs Prometheus
  const Samples before = All(text, "encoderd_requests_total");
  ASSERT_TRUE(server.Load().ok());
  v1::EmbedResponse response;
  ASSERT_TRUE(server.Embed(TextRequest({"x"}), &response).ok());
  EXPECT_EQ(All(server.MetricsText(), "encoderd_requests_total").size(),
            before.size());
}

// server/docs/metrics.md says so.
TEST(MetricsTest, WhatGrpcItselfRejectsIsInNoMetricAndNoLog) {
  ServerConfig config = TestConfig();
  config.max_message_bytes = 64 << 10;
  TestServer server({}, config);
  const std::string before = server.MetricsText();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(server.CallRaw("Sing", "").error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(server.CallRaw("Embed", std::string(65 << 10, 'x')).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  const std::string after = server.MetricsText();
  for (const char* name :
       {"encoderd_requests_total", "encoderd_rejections_total"}) {
    EXPECT_EQ(All(after, name), All(before, name));
  }
}

TEST(MetricsTest, SumsEqualWhatTheCallersCounted) {
  TestServer server({}, TwoModels());
  Tally tally;
  Caller caller(&server, &tally);
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {
        caller.Everything();
        caller.OneStream();
      }
    });
  }
  for (std::thread& thread : callers) thread.join();

  // The device of the model loaded last.
  FakeDevice& device = server.model().device();
  device.FailNext(1, absl::InternalError("a bad day"));
  EXPECT_EQ(caller.Embed("two", "two", TextRequest({"x"})).error_code(),
            grpc::StatusCode::INTERNAL);
  device.CloseGate();
  std::thread held([&] {
    caller.Embed("two", "two", TextRequest({Letters(250), Letters(150)}));
  });
  ASSERT_TRUE(device.WaitForBatchesAtGate(1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(
        caller.Embed("two", "two", TextRequest({Letters(200)})).error_code(),
        grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  device.OpenGate();
  held.join();
  tally.ExpectIn(server.MetricsText());
}

TEST(MetricsTest, RefusalsLeaveTheDurationsOfOkCallsAlone) {
  ServerConfig config = TestConfig();
  config.max_queue_tokens = 256;
  TestServer server({}, config);
  FakeDevice& device = server.model().device();
  device.CloseGate();
  v1::EmbedResponse response;
  std::thread held([&] {
    v1::EmbedResponse answer;
    EXPECT_TRUE(server.Embed(TextRequest({Letters(200)}), &answer).ok());
  });
  ASSERT_TRUE(device.WaitForBatchesAtGate(1));
  const absl::Time start = SteadyNow();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(server.Embed(TextRequest({Letters(200)}), &response).error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  absl::SleepFor(absl::Milliseconds(50));
  const double waited = absl::ToDoubleSeconds(SteadyNow() - start);
  device.OpenGate();
  held.join();
  const std::string text = server.MetricsText();
  const auto sample = [&](const std::string& rest) {
    return TestServer::Sample(
        text, absl::StrCat("encoderd_request_duration_seconds_", rest));
  };
  EXPECT_EQ(sample("count{outcome=\"refused\"}"), 50);
  EXPECT_LE(sample("sum{outcome=\"refused\"}"), waited);
  EXPECT_EQ(sample("count{outcome=\"ok\"}"), 1);
  EXPECT_GE(sample("sum{outcome=\"ok\"}"), waited);
  EXPECT_EQ(sample("bucket{outcome=\"ok\",le=\"0.04\"}"), 0);
}

TEST(MetricsTest, FullnessIsWhatIsAdmittedOfWhatMayBe) {
  ServerConfig config = TwoModels();
  config.threads = 2;
  config.max_batch_tokens = 300;
  TestServer server({}, config);
  FakeDevice& device = server.model().device();
  device.CloseGate();
  std::thread held([&] {
    v1::EmbedRequest request = TextRequest({Letters(250), Letters(150)});
    request.set_model("two");
    v1::EmbedResponse response;
    EXPECT_TRUE(server.Embed(request, &response).ok());
  });
  ASSERT_TRUE(device.WaitForBatchesAtGate(2));
  std::string text = server.MetricsText();
  const auto of_two = [&](const std::string& name) {
    return TestServer::Sample(text, absl::StrCat(name, "{model=\"two\"}"));
  };
  EXPECT_EQ(of_two("encoderd_admitted_tokens"), 400);
  EXPECT_EQ(of_two("encoderd_admitted_tokens_limit"), 512);
  EXPECT_EQ(of_two("encoderd_queue_tokens"), 0);  // both at the device
  EXPECT_EQ(of_two("encoderd_admitted_bytes"), 0);
  EXPECT_EQ(of_two("encoderd_admitted_bytes_limit"),
            4.0 * static_cast<double>(config.max_message_bytes) +
                80.0 * config.max_inputs_per_request);
  EXPECT_EQ(of_two("encoderd_compute_threads"), 2);
  EXPECT_EQ(of_two("encoderd_compute_threads_busy"), 2);
  EXPECT_GT(of_two("encoderd_oldest_batch_age_seconds"), 0);
  EXPECT_EQ(TestServer::Sample(
                text, "encoderd_oldest_batch_age_seconds{model=\"one\"}"),
            0);
  EXPECT_EQ(of_two("encoderd_max_batch_tokens"), 300);
  EXPECT_EQ(TestServer::Sample(text, "encoderd_admitted_tokens{model=\"one\"}"),
            0);
  EXPECT_EQ(NotZero(All(text, "encoderd_requests_in_flight")),
            (Samples{{"{method=\"Embed\"}", 1}}));
  device.OpenGate();
  held.join();
  EXPECT_TRUE(Eventually([&] {
    text = server.MetricsText();
    return of_two("encoderd_admitted_tokens") == 0 &&
           of_two("encoderd_oldest_batch_age_seconds") == 0 &&
           NotZero(All(text, "encoderd_requests_in_flight")).empty();
  }));
}

TEST(MetricsTest, ConnectionsStreamsAndTheirRequestsAreThoseOfNow) {
  ServerConfig config = TestConfig();
  config.max_connections = 7;
  TestServer server({}, config);
  server.model().device().CloseGate();
  auto stream = std::make_unique<Stream>(&server);
  for (const char* id : {"a", "b", "c"}) {
    EXPECT_TRUE(stream->Write(Request(id, {"x"})));
  }
  const auto now = [&](const std::string& series) {
    return TestServer::Sample(server.MetricsText(), series);
  };
  const std::string in_flight =
      "encoderd_requests_in_flight{method=\"EmbedStream\"}";
  EXPECT_TRUE(Eventually([&] { return now(in_flight) == 3; }));
  EXPECT_EQ(now("encoderd_streams"), 1);
  EXPECT_EQ(now("encoderd_connections"), 1);
  EXPECT_EQ(now("encoderd_connections_limit"), 7);
  server.model().device().OpenGate();
  stream->HalfClose();
  EXPECT_EQ(stream->ReadAll().size(), 3);
  EXPECT_TRUE(stream->Finish().ok());
  stream = nullptr;
  server.Disconnect();
  EXPECT_TRUE(Eventually([&] {
    return now(in_flight) == 0 && now("encoderd_streams") == 0 &&
           now("encoderd_connections") == 0;
  }));
}

TEST(MetricsTest, AStreamThatIsCutOffLeavesNothingInFlight) {
  TestServer server;
  server.model().device().CloseGate();
  Stream stream(&server);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(stream.Write(Request(absl::StrCat(i), {"x"})));
  }
  const auto in_flight = [&] {
    return TestServer::Sample(server.MetricsText(),
                              "encoderd_requests_in_flight");
  };
  EXPECT_TRUE(Eventually([&] { return in_flight() == 20; }));
  stream.Cancel();
  server.model().device().OpenGate();
  EXPECT_TRUE(Eventually([&] { return in_flight() == 0; }));
}

TEST(MetricsTest, TheStateIsThatOfTheServersLife) {
  ServerConfig config = TestConfig();
  config.drain_delay = kPatience;
  TestServer server(TestServer::NotLoaded(), {}, config);
  const auto state = [&] {
    return NotZero(All(server.MetricsText(), "encoderd_state"));
  };
  EXPECT_EQ(state(), (Samples{{"{state=\"loading\"}", 1}}));
  ASSERT_TRUE(server.Load().ok());
  EXPECT_EQ(state(), (Samples{{"{state=\"serving\"}", 1}}));
  // Draining from the moment that health says so, while work is still taken.
  std::thread drain([&] { server.server().Drain(); });
  EXPECT_TRUE(Eventually([&] {
    return state() == Samples{{"{state=\"draining\"}", 1}};
  }));
  v1::EmbedResponse response;
  EXPECT_TRUE(server.Embed(TextRequest({"x"}), &response).ok());
  // A lost device ends the delay.
  server.model().device().LoseAfter(0);
  EXPECT_FALSE(server.Embed(TextRequest({"x"}), &response).ok());
  EXPECT_EQ(state(), (Samples{{"{state=\"failed\"}", 1}}));
  drain.join();
}

}  // namespace
}  // namespace encoderd
