// What the pipeline reports, as lines of the log.
#include "server/observe/pipeline_reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/time/clock.h"
#include "server/base/log.h"
#include "server/base/steady_time.h"
#include "server/pipeline/errors.h"

namespace encoderd {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class PipelineReporterTest : public ::testing::Test {
 protected:
  template <typename Report>
  std::string LogOf(const Report& report) {
    ::testing::internal::CaptureStderr();
    report(reporter_);
    return ::testing::internal::GetCapturedStderr();
  }

  int lost_ = 0;
  Metrics metrics_{{"mini"}, {{"Embed", true}}, ""};
  PipelineReporter reporter_{&metrics_, "mini", [this] { ++lost_; }};
};

TEST_F(PipelineReporterTest, ANoteOfTheDeviceIsAWarningWithTheModel) {
  EXPECT_THAT(
      LogOf([](PipelineObserver& to) { to.DeviceNote("cuda:0: no graphs"); }),
      EndsWith(" level=warning event=device_note model=mini "
               "note=\"cuda:0: no graphs\"\n"));
  EXPECT_EQ(lost_, 0);
}

TEST_F(PipelineReporterTest, AFaultIsAnErrorWithTheIdOfItsAnswers) {
  const absl::Status fault =
      DeviceFaultForLog(absl::InternalError("on fire"), "4711");
  for (const bool lost : {false, true}) {
    EXPECT_THAT(
        LogOf([&](PipelineObserver& to) { to.DeviceFault(lost, fault); }),
        AllOf(HasSubstr(lost ? " level=error event=device_lost model=mini "
                             : " level=error event=device_fault model=mini "),
              HasSubstr("on fire"), HasSubstr("4711")));
    EXPECT_EQ(lost_, lost ? 1 : 0);
  }
}

// Of a model whose results are no numbers, for example; that the device is lost
// is said all the same.
TEST_F(PipelineReporterTest, AFloodOfFaultsDoesNotFillTheDisk) {
  const absl::Status fault =
      DeviceFaultForLog(absl::InternalError("on fire"), "4711");
  const absl::Time start = SteadyNow();
  const std::string log = LogOf([&](PipelineObserver& to) {
    for (int i = 0; i < 1000; ++i) to.DeviceFault(false, fault);
    to.DeviceFault(true, fault);
  });
  const int64_t most =
      kFaultLinesAtOnce + (SteadyNow() - start) / kFaultLineInterval + 2;
  const int64_t lines = std::count(log.begin(), log.end(), '\n');
  EXPECT_GT(lines, kFaultLinesAtOnce);
  EXPECT_LE(lines, most);
  EXPECT_THAT(log, HasSubstr("event=device_lost"));
  EXPECT_EQ(lost_, 1);
  // The next line tells of the others.
  std::string next;
  while (next.empty()) {
    absl::SleepFor(kFaultLineInterval);
    next = LogOf([&](PipelineObserver& to) { to.DeviceFault(false, fault); });
  }
  EXPECT_THAT(next, HasSubstr(" left_out="));
}

}  // namespace
}  // namespace encoderd
