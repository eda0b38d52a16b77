#include "server/trace/tracer.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/steady_time.h"
#include "tests/support/patience.h"

namespace encoderd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kSampled[] =
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr char kNotSampled[] =
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

class FakeExporter final : public Exporter {
 public:
  using Body = std::function<ExportResult(absl::Span<const CallSpan> spans,
                                          absl::Duration timeout)>;

  explicit FakeExporter(
      Body body, std::function<void()> cancel = [] {})
      : body_(std::move(body)), cancel_(std::move(cancel)) {}

  ExportResult Export(absl::Span<const CallSpan> spans,
                      absl::Duration timeout) override {
    return body_(spans, timeout);
  }
  void Cancel() override { cancel_(); }

 private:
  const Body body_;
  const std::function<void()> cancel_;
};

// A collector whose exports end when it is told.
class Collector {
 public:
  // Of each export, `answer.failed` spans fail.
  std::unique_ptr<Exporter> Take(const ExportResult& answer = {}) {
    return std::make_unique<FakeExporter>(
        [this, answer](absl::Span<const CallSpan> spans, absl::Duration) {
          begun_.Release();
          open_.WaitForNotification();
          absl::MutexLock lock(&mu_);
          batches_.push_back(spans.size());
          for (const CallSpan& span : spans) spans_.push_back(span);
          return answer;
        });
  }
  void Open() { open_.Notify(); }
  void WaitForExport() { begun_.Wait(); }

  std::vector<CallSpan> spans() const {
    absl::MutexLock lock(&mu_);
    return spans_;
  }
  std::vector<size_t> batches() const {
    absl::MutexLock lock(&mu_);
    return batches_;
  }

 private:
  class Flag {
   public:
    void Release() {
      absl::MutexLock lock(&mu_);
      set_ = true;
    }
    void Wait() {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&set_));
    }

   private:
    absl::Mutex mu_;
    bool set_ = false;
  };

  Flag begun_;
  absl::Notification open_;
  mutable absl::Mutex mu_;
  std::vector<CallSpan> spans_;
  std::vector<size_t> batches_;
};

CallSpan Call(const std::string& method = "Embed") {
  CallSpan span;
  span.method = method;
  return span;
}

// Exports soon, and has all the time there is for what is left at the end.
TraceOptions Quick() {
  TraceOptions options;
  options.interval = absl::Milliseconds(5);
  options.last_timeout = absl::Hours(1);
  return options;
}

TEST(TracerTest, ACallerThatRecordsIsJoined) {
  Collector collector;
  collector.Open();
  TraceOptions options;
  options.ratio = 0;
  const Tracer tracer(options, collector.Take());
  const auto context = tracer.Begin(kSampled);
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(context->trace_id[0], 0x0a);
  EXPECT_EQ(context->parent[0], 0xb7);
}

TEST(TracerTest, ACallerThatDoesNotRecordIsNotTraced) {
  Collector collector;
  collector.Open();
  const Tracer tracer(TraceOptions(), collector.Take());
  EXPECT_FALSE(tracer.Begin(kNotSampled).has_value());
}

TEST(TracerTest, WithoutACallersTraceTheRatioDecides) {
  Collector collector;
  collector.Open();
  for (const double ratio : {0.0, 0.25, 1.0}) {
    TraceOptions options;
    options.ratio = ratio;
    const Tracer tracer(options, collector.Take());
    int traced = 0;
    for (int i = 0; i < 10000; ++i) traced += tracer.Begin("").has_value();
    EXPECT_NEAR(traced, 10000 * ratio, ratio == 0.25 ? 400 : 0);  // 9 sigma
  }
}

TEST(TracerTest, ATraceThatStartsHereHasNoParentAndAFreshId) {
  Collector collector;
  collector.Open();
  const Tracer tracer(TraceOptions(), collector.Take());
  std::set<TraceId> ids;
  for (int i = 0; i < 1000; ++i) {
    const auto context = tracer.Begin("nonsense");
    ASSERT_TRUE(context.has_value());
    EXPECT_EQ(context->parent, SpanId());
    ids.insert(context->trace_id);
  }
  EXPECT_EQ(ids.size(), 1000);
}

TEST(TracerTest, ExportsSpansInTheirOrderUnderFreshIds) {
  Collector collector;
  collector.Open();
  Tracer tracer(Quick(), collector.Take());
  for (int i = 0; i < 100; ++i) tracer.End(Call(std::to_string(i)));
  ASSERT_TRUE(Eventually([&] { return tracer.figures().exported == 100; }));
  std::set<SpanId> ids;
  const std::vector<CallSpan> spans = collector.spans();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(spans[i].method, std::to_string(i));
    ids.insert(spans[i].id);
  }
  EXPECT_EQ(ids.size(), 100);
  EXPECT_EQ(ids.count(SpanId()), 0);
}

TEST(TracerTest, AnExportHasAtMostABatch) {
  Collector collector;
  TraceOptions options = Quick();
  options.max_batch = 10;
  {
    Tracer tracer(options, collector.Take());
    for (int i = 0; i < 45; ++i) tracer.End(Call());
    collector.Open();
  }
  EXPECT_EQ(collector.spans().size(), 45);
  for (const size_t batch : collector.batches()) EXPECT_LE(batch, 10);
}

TEST(TracerTest, ASlowCollectorCostsSpansAndNoCallWaits) {
  EXPECT_EQ(TraceOptions().max_waiting, 2048);
  Collector collector;
  TraceOptions options = Quick();
  options.max_waiting = 20;
  options.max_batch = 5;
  Tracer tracer(options, collector.Take());
  tracer.End(Call());
  collector.WaitForExport();                          // it hangs from here on
  for (int i = 0; i < 1000; ++i) tracer.End(Call());  // returns all the same
  EXPECT_EQ(tracer.figures().dropped, 980);
  collector.Open();
  ASSERT_TRUE(Eventually([&] { return tracer.figures().exported == 21; }));
}

TEST(TracerTest, WhatACollectorDoesNotTakeIsCountedAndGone) {
  Collector collector;
  TraceOptions options = Quick();
  options.max_batch = 4;
  Tracer tracer(options, collector.Take({absl::UnavailableError("picky"), 1}));
  for (int i = 0; i < 12; ++i) tracer.End(Call());
  collector.Open();
  ASSERT_TRUE(Eventually([&] {
    const TraceFigures figures = tracer.figures();
    return figures.exported + figures.failed == 12;
  }));
  EXPECT_EQ(tracer.figures().failed, collector.batches().size());
  EXPECT_EQ(collector.spans().size(), 12);
}

// The lines of the log about `count` failed exports.
std::vector<std::string> LinesOfFailures(int count, absl::Duration interval) {
  ::testing::internal::CaptureStderr();
  {
    Collector collector;
    collector.Open();
    TraceOptions options = Quick();
    options.log_interval = interval;
    Tracer tracer(options, collector.Take({absl::UnavailableError("away"), 1}));
    for (int i = 0; i < count; ++i) {
      tracer.End(Call());
      EXPECT_TRUE(Eventually([&] { return tracer.figures().failed == i + 1; }));
    }
  }
  return absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n',
                        absl::SkipEmpty());
}

TEST(TracerTest, FailedExportsAreLoggedOnceInAnInterval) {
  EXPECT_EQ(TraceOptions().log_interval, absl::Minutes(1));
  EXPECT_THAT(LinesOfFailures(3, absl::Hours(1)),
              ElementsAre(HasSubstr("level=warning event=trace_export_failed "
                                    "spans=1 code=UNAVAILABLE message=away")));
  EXPECT_THAT(LinesOfFailures(3, absl::ZeroDuration()), SizeIs(3));
}

TEST(TracerTest, LeavingExportsWhatIsLeft) {
  Collector collector;
  collector.Open();
  TraceOptions options;
  options.interval = absl::Hours(1);
  options.last_timeout = absl::Hours(1);
  {
    Tracer tracer(options, collector.Take());
    for (int i = 0; i < 3; ++i) tracer.End(Call());
  }
  EXPECT_EQ(collector.spans().size(), 3);
}

TEST(TracerTest, LeavingGivesACollectorOnlyTheTimeThatIsLeft) {
  std::vector<absl::Duration> given;  // once it leaves
  TraceOptions options;
  options.export_timeout = absl::Hours(2);
  options.last_timeout = absl::Hours(1);
  options.max_batch = 2;
  Tracer* tracer = nullptr;
  const auto take = [&](absl::Span<const CallSpan> spans,
                        absl::Duration timeout) {
    absl::SleepFor(absl::Milliseconds(1));
    if (timeout > options.last_timeout) {  // the queue stays as it was
      for (size_t i = 0; i < spans.size(); ++i) tracer->End(Call());
    } else {
      given.push_back(timeout);
    }
    return ExportResult();
  };
  {
    Tracer leaves(options, std::make_unique<FakeExporter>(take));
    tracer = &leaves;
    for (int i = 0; i < 6; ++i) leaves.End(Call());
  }
  ASSERT_GE(given.size(), 2);
  for (size_t i = 1; i < given.size(); ++i) {
    EXPECT_LE(given[i], given[i - 1] - absl::Milliseconds(1));
  }
}

TEST(TracerTest, LeavingCancelsAnExportThatOutlastsTheTime) {
  TraceOptions options = Quick();
  options.export_timeout = absl::Hours(1);
  options.last_timeout = absl::Milliseconds(50);
  int exports = 0;
  absl::Notification begun;
  absl::Notification cancelled;
  auto tracer = std::make_unique<Tracer>(
      options, std::make_unique<FakeExporter>(
                   [&](absl::Span<const CallSpan>, absl::Duration) {
                     if (++exports == 1) begun.Notify();
                     cancelled.WaitForNotification();
                     return ExportResult{absl::CancelledError("cancelled"), 1};
                   },
                   [&] { cancelled.Notify(); }));
  tracer->End(Call());
  begun.WaitForNotification();
  tracer->End(Call());
  const absl::Time left = SteadyNow();
  tracer.reset();  // without Cancel it would never return
  EXPECT_GE(SteadyNow() - left, options.last_timeout);
  EXPECT_EQ(exports, 1);  // no time was left for the second span
}

TEST(TracerTest, LeavingCancelsNothingThatEndsInTime) {
  bool cancelled = false;
  {
    Tracer tracer(Quick(), std::make_unique<FakeExporter>(
                               [](absl::Span<const CallSpan>, absl::Duration) {
                                 return ExportResult();
                               },
                               [&] { cancelled = true; }));
    tracer.End(Call());
  }
  EXPECT_FALSE(cancelled);
}

}  // namespace
}  // namespace encoderd
