// What the pipeline reports, as lines of the log.
#include "server/observe/pipeline_reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace encoderd
