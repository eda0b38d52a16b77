// What encoderctl bench says of figures that no server had to give.
#include "client/cpp/encoderctl/bench_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace encoderd::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class BenchReportTest : public ::testing::Test {
 protected:
  BenchReportTest() {
    load_.texts = {"one", "two", "one"};
    load_.concurrency = 4;
    figures_.measured = absl::Seconds(2);
    figures_.answered = figures_.texts = 100;
    figures_.latencies.assign(100, absl::Milliseconds(5));
  }
  BenchReport Report(bool stopped = false) const {
    return {figures_, load_, limits_, "m", stopped};
  }
  nlohmann::json Json(bool stopped = false) const {
    return nlohmann::json::parse(Report(stopped).ToJson());
  }

  Figures figures_;
  Load load_;
  MeasureLimits limits_{absl::Seconds(1), absl::Seconds(2), 1000};
};

TEST_F(BenchReportTest, SaysWhatEndedTheMeasurement) {
  EXPECT_THAT(Report().ToText(), HasSubstr("warm-up of 1s, ended by duration"));
  EXPECT_EQ(Json()["ended_by"], "duration");
  EXPECT_THAT(Report(true).ToText(), HasSubstr("warm-up of 1s, interrupted\n"));
  EXPECT_EQ(Json(true)["ended_by"], "interrupted");
  limits_.calls = 103;
  figures_.failed = 3;
  EXPECT_THAT(Report().ToText(), HasSubstr("ended by count"));
  EXPECT_EQ(Json()["ended_by"], "count");
}

TEST_F(BenchReportTest, CountsEqualTextsOnceAndWarnsOfThemInAClosedLoopOnly) {
  const auto warning = HasSubstr("only 2 distinct for 4 in flight");
  EXPECT_EQ(Json()["distinct_texts"], 2);
  EXPECT_THAT(Report().ToText(), warning);
  load_.rate = 10;
  EXPECT_THAT(Report().ToText(), Not(warning));
  load_.rate = 0;
  load_.concurrency = 2;
  EXPECT_THAT(Report().ToText(), Not(HasSubstr("distinct")));
}

TEST_F(BenchReportTest, AnOpenLoopTakesMoreCallsForASampleThatIsLargeEnough) {
  EXPECT_EQ(Json()["sample_too_small"], false);
  EXPECT_THAT(Report().ToText(), Not(HasSubstr("too small")));
  load_.rate = 10;
  EXPECT_EQ(Json()["sample_too_small"], true);
  EXPECT_THAT(Report().ToText(),
              HasSubstr("100 answered calls; it needs 1000: raise "));
}

TEST_F(BenchReportTest, ALongerRunIsNoRemedyWhereEveryCallFailed) {
  figures_.answered = figures_.texts = 0;
  figures_.latencies.clear();
  figures_.failed = 3;
  EXPECT_THAT(Report().ToText(), HasSubstr("0 answered calls; it needs 100\n"));
  figures_.failed = 0;
  EXPECT_THAT(Report().ToText(),
              HasSubstr("0 answered calls; it needs 100: raise "));
}

}  // namespace
}  // namespace encoderd::ctl
