#include "server/observe/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "encoderd/v1/encoder.pb.h"

namespace encoderd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsTest, KnowsEveryReasonOfTheContract) {
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

const std::vector<std::string> kMethods = {"Embed", "Encode"};

TEST(MetricsTest, CountsAnswersByMethodAndCodeAndRefusalsByReason) {
  Metrics metrics({"mini"}, kMethods);
  metrics.ForMethod("Encode")->Answered(absl::StatusCode::kOk, "",
                                        absl::Milliseconds(3));
  metrics.ForMethod("Embed")->Answered(
      absl::StatusCode::kNotFound, "MODEL_NOT_FOUND", absl::Milliseconds(3));
  const std::string text = metrics.Text();
  EXPECT_THAT(
      text,
      HasSubstr("encoderd_requests_total{code=\"OK\",method=\"Encode\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("encoderd_requests_total{code=\"NOT_FOUND\","
                              "method=\"Embed\"} 1\n"));
  EXPECT_THAT(
      text,
      HasSubstr("encoderd_rejections_total{reason=\"MODEL_NOT_FOUND\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("encoderd_request_duration_seconds_count 2\n"));
}

TEST(MetricsTest, AnythingUnlistedCountsAsAnInternalFault) {
  Metrics metrics({"mini"}, kMethods);
  metrics.ForMethod("Embed")->Answered(absl::StatusCode::kAborted, "SURPRISE",
                                       absl::Milliseconds(3));
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("encoderd_requests_total{code=\"INTERNAL\","
                              "method=\"Embed\"} 1\n"));
  EXPECT_THAT(
      text,
      HasSubstr("encoderd_rejections_total{reason=\"INTERNAL_FAULT\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("SURPRISE")));
}

TEST(MetricsTest, TheModelReplacesItsEmptySeries) {
  Metrics metrics({"mini"}, kMethods);
  EXPECT_THAT(metrics.Text(), HasSubstr("\nencoderd_model_info 0\n"));
  metrics.SetModel({{"model", "mini"}});
  EXPECT_THAT(metrics.Text(),
              HasSubstr("\nencoderd_model_info{model=\"mini\"} 1\n"));
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("\nencoderd_model_info 0\n")));
}

TEST(MetricsTest, WhatBelongsToAModelIsThereForEachFromTheStart) {
  Metrics metrics({"mini", "large"}, kMethods);
  metrics.ForModel("large")->Queue(3, 40);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("encoderd_queue_inputs{model=\"mini\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("encoderd_queue_inputs{model=\"large\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("encoderd_queue_tokens{model=\"large\"} 40\n"));
  EXPECT_THAT(text, HasSubstr("encoderd_tokens_total{model=\"mini\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("encoderd_cancelled_total{model=\"mini\","
                              "stage=\"queue\"} 0\n"));
}

TEST(MetricsDeathTest, ANameThatWasNotGivenAtTheStartIsABug) {
  Metrics metrics({"mini"}, kMethods);
  EXPECT_DEATH(metrics.ForMethod("Sing"), "no metrics for the method 'Sing'");
  EXPECT_DEATH(metrics.ForModel("huge"), "no metrics for the model 'huge'");
}

TEST(MetricsTest, NoFamilyHasMoreThanAHundredSeries) {
  const std::string text = Metrics({"mini"}, kMethods).Text();
  std::map<std::string, int> series;
  size_t begin = 0;
  for (size_t end = 0; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    if (line[0] == '#') continue;
    ++series[line.substr(0, line.find_first_of("{ "))];
  }
  for (const auto& [name, count] : series) EXPECT_LE(count, 100) << name;
}

}  // namespace
}  // namespace encoderd
