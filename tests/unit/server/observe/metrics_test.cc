#include "server/observe/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "encoderd/v1/encoder.pb.h"

namespace encoderd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<ServedMethod> kMethods = {
    {"Embed", true}, {"List", false}, {"Inspect", true, false}};

// The bounds of one histogram, by labels as they are written.
std::vector<double> Bounds(const std::string& text, const std::string& name,
                           const std::string& labels) {
  const std::string begin = absl::StrCat(name, "_bucket{", labels, ",le=\"");
  std::vector<double> bounds;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    double bound = 0;
    if (absl::ConsumePrefix(&line, begin) &&
        absl::SimpleAtod(line.substr(0, line.find('"')), &bound)) {
      bounds.push_back(bound);
    }
  }
  return bounds;
}

TEST(LabelsTest, KnowEveryReasonOfTheContract) {
  std::vector<std::string> contract;
  const auto* reasons = v1::ErrorReason_descriptor();
  for (int i = 0; i < reasons->value_count(); ++i) {
    const std::string name(reasons->value(i)->name());
    const std::string reason = name.substr(sizeof("ERROR_REASON_") - 1);
    // Health's own answer is no call of ours.
    if (reason != "UNSPECIFIED" && reason != "SERVICE_NOT_FOUND") {
      contract.push_back(reason);
    }
  }
  EXPECT_THAT(RejectionReasons(),
              ::testing::UnorderedElementsAreArray(contract));
}

TEST(LabelsTest, TheOutcomeFollowsFromTheCode) {
  std::map<std::string, std::vector<std::string>> codes;
  for (int code = 0; code <= 16; ++code) {
    const auto status = static_cast<absl::StatusCode>(code);
    codes[OutcomeOf(status)].push_back(absl::StatusCodeToString(status));
  }
  EXPECT_THAT(codes["ok"], ElementsAre("OK"));
  EXPECT_THAT(codes["invalid"],
              ElementsAre("INVALID_ARGUMENT", "NOT_FOUND", "UNAUTHENTICATED"));
  EXPECT_THAT(codes["refused"],
              ElementsAre("RESOURCE_EXHAUSTED", "UNAVAILABLE"));
  EXPECT_THAT(codes["cancelled"],
              ElementsAre("CANCELLED", "DEADLINE_EXCEEDED"));
  EXPECT_EQ(codes["failed"].size(), 9);
  EXPECT_EQ(codes.size(), 5);
}

TEST(MetricsTest, CountsAnswersByMethodModelOutcomeAndCode) {
  Metrics metrics({"mini", "large"}, kMethods, "");
  MethodMetrics* const embed = metrics.ForMethod("Embed");
  embed->Answered(metrics.ForModel("large"), {absl::StatusCode::kOk, ""},
                  absl::Milliseconds(3));
  embed->Answered(metrics.ForModel("mini"),
                  {absl::StatusCode::kResourceExhausted, "QUEUE_FULL"},
                  absl::Milliseconds(1));
  embed->Answered(metrics.NoModel(),
                  {absl::StatusCode::kNotFound, "MODEL_NOT_FOUND"},
                  absl::Milliseconds(1));
  metrics.ForMethod("List")->Answered(
      metrics.NoModel(), {absl::StatusCode::kOk, ""}, absl::Milliseconds(1));
  const std::string text = metrics.Text();
  for (const char* sample :
       {"encoderd_requests_total{code=\"OK\",method=\"Embed\","
        "model=\"large\",outcome=\"ok\"} 1\n",
        "encoderd_requests_total{code=\"OK\",method=\"Embed\","
        "model=\"mini\",outcome=\"ok\"} 0\n",
        "encoderd_requests_total{code=\"RESOURCE_EXHAUSTED\","
        "method=\"Embed\",model=\"mini\",outcome=\"refused\"} 1\n",
        "encoderd_requests_total{code=\"NOT_FOUND\",method=\"Embed\","
        "model=\"\",outcome=\"invalid\"} 1\n",
        "encoderd_requests_total{code=\"OK\",method=\"List\",model=\"\","
        "outcome=\"ok\"} 1\n",
        "encoderd_request_duration_seconds_sum{method=\"Embed\","
        "model=\"large\",outcome=\"ok\"} 0.003",
        "encoderd_request_duration_seconds_count{method=\"Embed\","
        "model=\"mini\",outcome=\"refused\"} 1\n",
        "encoderd_rejections_total{model=\"mini\","
        "reason=\"QUEUE_FULL\"} 1\n",
        "encoderd_rejections_total{model=\"large\","
        "reason=\"QUEUE_FULL\"} 0\n",
        "encoderd_rejections_total{model=\"\","
        "reason=\"MODEL_NOT_FOUND\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(sample));
  }
  EXPECT_THAT(text, Not(HasSubstr("method=\"List\",model=\"mini\"")));
}

// So that one caller at its own limit is no sign of a full server.
TEST(MetricsTest, ALimitOfTheCallersOwnCountsAsTheCallersFault) {
  Metrics metrics({"mini"}, kMethods, "");
  for (ModelCalls* const model :
       {metrics.NoModel(),
        static_cast<ModelCalls*>(metrics.ForModel("mini"))}) {
    metrics.ForMethod("Embed")->Answered(model,
                                         {absl::StatusCode::kResourceExhausted,
                                          "QUEUE_FULL", /*own_limit=*/true},
                                         absl::Milliseconds(1));
  }
  metrics.ForMethod("Inspect")->Answered(
      metrics.ForModel("mini"),
      {absl::StatusCode::kResourceExhausted, "QUEUE_FULL", /*own_limit=*/true},
      absl::Milliseconds(1));
  const std::string text = metrics.Text();
  for (const char* sample :
       {"encoderd_requests_total{code=\"RESOURCE_EXHAUSTED\","
        "method=\"Embed\",model=\"\",outcome=\"invalid\"} 1\n",
        "encoderd_requests_total{code=\"RESOURCE_EXHAUSTED\","
        "method=\"Embed\",model=\"mini\",outcome=\"invalid\"} 1\n",
        "encoderd_requests_total{code=\"RESOURCE_EXHAUSTED\","
        "method=\"Embed\",model=\"mini\",outcome=\"refused\"} 0\n",
        "encoderd_requests_total{code=\"RESOURCE_EXHAUSTED\","
        "method=\"List\",model=\"\",outcome=\"invalid\"} 0\n",
        "encoderd_requests_total{code=\"RESOURCE_EXHAUSTED\","
        "method=\"Inspect\",model=\"mini\",outcome=\"invalid\"} 1\n",
        "encoderd_rejections_total{model=\"mini\","
        "reason=\"QUEUE_FULL\"} 2\n"}) {
    EXPECT_THAT(text, HasSubstr(sample));
  }
}

TEST(MetricsTest, AnythingUnlistedCountsAsAnInternalFault) {
  Metrics metrics({"mini"}, kMethods, "");
  MethodMetrics* const embed = metrics.ForMethod("Embed");
  embed->Answered(metrics.ForModel("mini"),
                  {absl::StatusCode::kAborted, "SURPRISE"},
                  absl::Milliseconds(3));
  // Not without a model: whoever is that far has found one.
  embed->Answered(metrics.NoModel(), {absl::StatusCode::kOk, ""},
                  absl::Milliseconds(3));
  const std::string text = metrics.Text();
  for (const char* sample :
       {"encoderd_requests_total{code=\"INTERNAL\",method=\"Embed\","
        "model=\"mini\",outcome=\"failed\"} 1\n",
        "encoderd_request_duration_seconds_count{method=\"Embed\","
        "model=\"mini\",outcome=\"failed\"} 1\n",
        "encoderd_requests_total{code=\"INTERNAL\",method=\"Embed\","
        "model=\"\",outcome=\"failed\"} 1\n",
        "encoderd_rejections_total{model=\"mini\","
        "reason=\"INTERNAL_FAULT\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(sample));
  }
  EXPECT_THAT(text, Not(HasSubstr("SURPRISE")));
}

TEST(MetricsTest, DuplicatesAreTokensAnsweredButNotInTheBatch) {
  Metrics metrics({"mini"}, kMethods, "");
  EXPECT_THAT(metrics.Text(),
              HasSubstr("encoderd_duplicate_tokens_total{model=\"mini\"} 0\n"));
  metrics.ForModel("mini")->Batch(/*tokens=*/100, /*sequences=*/4,
                                  /*duplicate_tokens=*/25);
  metrics.ForModel("mini")->Batch(10, 1, 0);
  const std::string text = metrics.Text();
  for (const char* sample :
       {"encoderd_tokens_total{model=\"mini\"} 135\n",
        "encoderd_duplicate_tokens_total{model=\"mini\"} 25\n",
        "encoderd_batch_tokens_sum{model=\"mini\"} 110\n",
        "encoderd_batch_sequences_sum{model=\"mini\"} 5\n"}) {
    EXPECT_THAT(text, HasSubstr(sample));
  }
}

TEST(MetricsTest, DurationsGoFromAMillisecondToAMinuteInSmallSteps) {
  const std::string text = Metrics({"mini"}, kMethods, "").Text();
  const std::vector<double> bounds =
      Bounds(text, "encoderd_request_duration_seconds",
             "method=\"Embed\",model=\"mini\",outcome=\"ok\"");
  ASSERT_GE(bounds.size(), 45);  // log(60000) / log(1.28)
  EXPECT_EQ(bounds.front(), 0.001);
  EXPECT_EQ(bounds[bounds.size() - 2], 60);  // before +Inf
  for (size_t i = 0; i + 2 < bounds.size(); ++i) {
    EXPECT_LE(bounds[i + 1] / bounds[i], 1.28 + 1e-12) << bounds[i];
  }
  // As short as anybody would write them.
  EXPECT_THAT(text, HasSubstr("le=\"0.00125\""));
  EXPECT_THAT(text, HasSubstr("le=\"0.063\""));
  EXPECT_THAT(text, HasSubstr("le=\"0.32\""));
}

TEST(MetricsTest, EachStageHasItsOwnRange) {
  const std::string text = Metrics({"mini"}, kMethods, "").Text();
  const std::map<std::string, std::pair<double, double>> ranges = {
      {"tokenize", {1e-5, 60}},
      {"queue", {1e-5, 60}},
      {"batch", {1e-6, 0.1}},
      {"compute", {1e-4, 60}},
      {"reply", {1e-6, 1}}};
  for (const auto& [stage, range] : ranges) {
    const std::vector<double> bounds =
        Bounds(text, "encoderd_stage_duration_seconds",
               absl::StrCat("model=\"mini\",stage=\"", stage, "\""));
    ASSERT_GE(bounds.size(), 3) << stage;
    EXPECT_EQ(bounds.front(), range.first) << stage;
    EXPECT_EQ(bounds[bounds.size() - 2], range.second) << stage;
  }
}

TEST(MetricsTest, RefusalsLeaveTheDurationsOfOkCallsAlone) {
  Metrics metrics({"mini"}, kMethods, "");
  MethodMetrics* const embed = metrics.ForMethod("Embed");
  for (int i = 0; i < 1000; ++i) {
    embed->Answered(metrics.ForModel("mini"),
                    {absl::StatusCode::kResourceExhausted, "QUEUE_FULL"},
                    absl::Microseconds(290));
  }
  embed->Answered(metrics.ForModel("mini"), {absl::StatusCode::kOk, ""},
                  absl::Milliseconds(875));
  const std::string text = metrics.Text();
  const std::string ok = "method=\"Embed\",model=\"mini\",outcome=\"ok\"";
  const std::string name = "\nencoderd_request_duration_seconds_";
  EXPECT_THAT(text, HasSubstr(absl::StrCat(name, "count{", ok, "} 1\n")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat(name, "sum{", ok, "} 0.875\n")));
  EXPECT_THAT(text,
              HasSubstr(absl::StrCat(name, "bucket{", ok, ",le=\"0.8\"} 0\n")));
  EXPECT_THAT(text,
              HasSubstr(absl::StrCat(name, "bucket{", ok, ",le=\"1\"} 1\n")));
}

TEST(MetricsTest, TheModelReplacesItsEmptySeries) {
  Metrics metrics({"mini"}, kMethods, "");
  EXPECT_THAT(metrics.Text(), HasSubstr("\nencoderd_model_info 0\n"));
  metrics.SetModel({{"model", "mini"}});
  EXPECT_THAT(metrics.Text(),
              HasSubstr("\nencoderd_model_info{model=\"mini\"} 1\n"));
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("\nencoderd_model_info 0\n")));
}

TEST(MetricsTest, WhatBelongsToAModelIsThereForEachFromTheStart) {
  Metrics metrics({"mini", "large"}, kMethods, "");
  metrics.ForModel("large")->Queue(3, 40);
  metrics.ForModel("large")->Sample(
      PipelineFigures{50, 100, 7, 9, 2, 1, absl::Milliseconds(2500), 32});
  const std::string text = metrics.Text();
  for (const char* sample :
       {"queue_inputs{model=\"mini\"} 0\n", "queue_inputs{model=\"large\"} 3\n",
        "queue_tokens{model=\"large\"} 40\n",
        "tokens_total{model=\"mini\"} 0\n",
        "cancelled_total{model=\"mini\",stage=\"queue\"} 0\n",
        "admitted_tokens{model=\"large\"} 50\n",
        "admitted_tokens_limit{model=\"large\"} 100\n",
        "admitted_bytes{model=\"large\"} 7\n",
        "admitted_bytes_limit{model=\"large\"} 9\n",
        "compute_threads{model=\"large\"} 2\n",
        "compute_threads_busy{model=\"large\"} 1\n",
        "oldest_batch_age_seconds{model=\"large\"} 2.5\n",
        "oldest_batch_age_seconds{model=\"mini\"} 0\n",
        "max_batch_tokens{model=\"large\"} 32\n",
        "max_batch_tokens{model=\"mini\"} 0\n"}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\nencoderd_", sample)));
  }
}

TEST(MetricsTest, ACallIsInFlightUntilItLeft) {
  Metrics metrics({"mini"}, kMethods, "");
  MethodMetrics* const embed = metrics.ForMethod("Embed");
  embed->Entered();
  embed->Entered();
  embed->Left();
  const std::string text = metrics.Text();
  EXPECT_THAT(text,
              HasSubstr("encoderd_requests_in_flight{method=\"Embed\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("encoderd_requests_in_flight{method=\"List\"} 0\n"));
}

TEST(MetricsTest, TheServerIsInOneStateAtATime) {
  Metrics metrics({"mini"}, kMethods, "");
  for (const auto state : {ServerState::kLoading, ServerState::kServing,
                           ServerState::kDraining, ServerState::kFailed}) {
    ServerFigures figures;
    figures.state = state;
    figures.connections = 5;
    figures.connections_limit = 10;
    figures.streams = 2;
    metrics.server().Sample(figures);
    const std::string text = metrics.Text();
    for (const char* name : {"loading", "serving", "draining", "failed"}) {
      EXPECT_THAT(text, HasSubstr(absl::StrCat(
                            "\nencoderd_state{state=\"", name, "\"} ",
                            name == absl::string_view(StateName(state)) ? 1 : 0,
                            "\n")));
    }
    EXPECT_THAT(text, HasSubstr("\nencoderd_connections 5\n"));
    EXPECT_THAT(text, HasSubstr("\nencoderd_connections_limit 10\n"));
    EXPECT_THAT(text, HasSubstr("\nencoderd_streams 2\n"));
  }
}

TEST(MetricsTest, SecretsAreShown) {
  Metrics metrics({"mini"}, kMethods, "");
  ServerFigures figures;
  figures.certificate_expires = absl::FromUnixSeconds(12);
  figures.client_ca_expires = absl::FromUnixSeconds(34);
  figures.token_reloads = {3, 2, true};
  figures.handshakes_failed[static_cast<int>(TlsFault::kNotTls)] = 4;
  metrics.server().Sample(figures);
  const std::string text = metrics.Text();
  for (const char* line :
       {"encoderd_tls_certificate_expiry_timestamp_seconds"
        "{certificate=\"server\"} 12",
        "encoderd_tls_certificate_expiry_timestamp_seconds"
        "{certificate=\"client_ca\"} 34",
        "encoderd_secret_reloads_total{outcome=\"ok\",what=\"bearer_tokens\"} "
        "3",
        "encoderd_secret_reloads_total{outcome=\"failed\","
        "what=\"bearer_tokens\"} 2",
        "encoderd_secret_reload_failing{what=\"bearer_tokens\"} 1",
        "encoderd_secret_reload_failing{what=\"certificates\"} 0",
        "encoderd_tls_handshakes_failed_total{cause=\"not_tls\"} 4",
        "encoderd_tls_handshakes_failed_total{cause=\"other\"} 0"}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\n", line, "\n")));
  }
}

TEST(MetricsTest, EachFigureOfTheProcessHasItsOwnName) {
  Metrics metrics({"mini"}, kMethods, "");
  metrics.server().Sample(ProcessFigures{.cpu_seconds = 1.5,
                                         .start_time_seconds = 2,
                                         .resident_bytes = 3,
                                         .virtual_bytes = 4,
                                         .open_fds = 5,
                                         .max_fds = 6,
                                         .threads = 7});
  const std::string text = metrics.Text();
  for (const char* line :
       {"process_cpu_seconds_total 1.5", "process_start_time_seconds 2",
        "process_resident_memory_bytes 3", "process_virtual_memory_bytes 4",
        "process_open_fds 5", "process_max_fds 6", "process_threads 7"}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\n", line, "\n")));
  }
}

TEST(MetricsTest, TheProcessorTimeOfTheProcessIsACounterThatNeverFalls) {
  Metrics metrics({"mini"}, kMethods, "");
  ProcessFigures process;
  for (const double seconds : {1.5, 2.25, 0.0}) {
    process.cpu_seconds = seconds;
    process.threads = 12;
    metrics.server().Sample(process);
  }
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("\nprocess_cpu_seconds_total 2.25\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_threads 12\n"));
}

TEST(MetricsTest, TheBuildSaysItsCommit) {
  EXPECT_THAT(Metrics({}, kMethods, "0123456789ab").Text(),
              HasSubstr("revision=\"0123456789ab\""));
}

TEST(MetricsDeathTest, ANameThatWasNotGivenAtTheStartIsABug) {
  Metrics metrics({"mini"}, kMethods, "");
  EXPECT_DEATH(metrics.ForMethod("Sing"), "no metrics for the method 'Sing'");
  EXPECT_DEATH(metrics.ForModel("huge"), "no metrics for the model 'huge'");
}

}  // namespace
}  // namespace encoderd
