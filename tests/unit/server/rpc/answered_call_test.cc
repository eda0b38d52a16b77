#include "server/rpc/answered_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "server/base/steady_time.h"
#include "server/pipeline/errors.h"
#include "server/trace/tracer.h"

namespace encoderd {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Keeps spans in place of a collector.
class KeepingExporter final : public Exporter {
 public:
  explicit KeepingExporter(std::vector<CallSpan>* kept) : kept_(*kept) {}
  ExportResult Export(absl::Span<const CallSpan> spans,
                      absl::Duration) override {
    kept_.insert(kept_.end(), spans.begin(), spans.end());
    return {};
  }
  void Cancel() override {}

 private:
  std::vector<CallSpan>& kept_;
};

absl::Status NotFound() {
  return MakeError(absl::StatusCode::kNotFound, "no model 'other'",
                   {"MODEL_NOT_FOUND", {}, "model"});
}

const std::vector<std::string> kOfInputs = {"EMPTY_INPUT", "EMPTY_INPUT"};

// Some rejection is counted.
constexpr char kAnyRejection[] = "encoderd_rejections_total\\{[^}]*\\} [1-9]";

class AnsweredCallTest : public ::testing::Test {
 protected:
  AnsweredCallTest() {
    model_.name = "fake";
    model_.metrics = metrics_.ForModel("fake");
    environment_.metrics = &metrics_;
  }

  // Calls are traced from here on.
  void Trace(double ratio) {
    TraceOptions options;
    options.ratio = ratio;
    tracer_ = std::make_unique<Tracer>(
        options, std::make_unique<KeepingExporter>(&spans_));
    environment_.tracer = tracer_.get();
  }
  // Of all calls that ended so far; none is traced any more.
  const std::vector<CallSpan>& Spans() {
    environment_.tracer = nullptr;
    tracer_.reset();
    return spans_;
  }

  CallRecord Arrived(const ServedModel* model = nullptr) {
    grpc::CallbackServerContext context;
    CallRecord record = Arrive(environment_, metrics_.ForMethod("Embed"),
                               CallContext(&context));
    record.model = model;
    return record;
  }

  Metrics metrics_{{"fake"}, {{"Embed"}}, ""};
  ServedModel model_;
  CallEnvironment environment_;
  std::vector<CallSpan> spans_;  // outlives the tracer
  std::unique_ptr<Tracer> tracer_;
};

TEST_F(AnsweredCallTest, AnAnswerIsItsModelsWithTheErrorsOfItsInputs) {
  CountAnswer(environment_, Arrived(&model_), absl::OkStatus(), {}, kOfInputs);
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, HasSubstr("encoderd_requests_total{code=\"OK\","
                              "method=\"Embed\",model=\"fake\","
                              "outcome=\"ok\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("encoderd_rejections_total{model=\"fake\","
                              "reason=\"EMPTY_INPUT\"} 2\n"));
}

TEST_F(AnsweredCallTest, AnErrorCountsForItsReasonAndNotForThoseOfItsInputs) {
  CountAnswer(environment_, Arrived(), NotFound());
  CountAnswer(environment_, Arrived(&model_), AnswerTooLargeError(2, 1, ""), {},
              kOfInputs);
  const std::string text = metrics_.Text();
  for (const char* sample :
       {"encoderd_requests_total{code=\"NOT_FOUND\",method=\"Embed\","
        "model=\"\",outcome=\"invalid\"} 1\n",
        "encoderd_rejections_total{model=\"\",reason=\"MODEL_NOT_FOUND\"} 1\n",
        "encoderd_requests_total{code=\"INVALID_ARGUMENT\","
        "method=\"Embed\",model=\"fake\",outcome=\"invalid\"} 1\n",
        "encoderd_rejections_total{model=\"fake\","
        "reason=\"REQUEST_TOO_LARGE\"} 1\n",
        "encoderd_rejections_total{model=\"fake\","
        "reason=\"EMPTY_INPUT\"} 0\n"}) {
    EXPECT_THAT(text, HasSubstr(sample));
  }
}

TEST_F(AnsweredCallTest, ACallerThatLeftIsNoRejection) {
  CountAnswer(environment_, Arrived(), absl::CancelledError());
  CountRefusedStream(environment_, metrics_.ForMethod("Embed"),
                     absl::CancelledError());
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, HasSubstr("encoderd_requests_total{code=\"CANCELLED\","
                              "method=\"Embed\",model=\"\","
                              "outcome=\"cancelled\"} 2\n"));
  EXPECT_THAT(text, Not(ContainsRegex(kAnyRejection)));
}

TEST_F(AnsweredCallTest, CancelledWorkIsARejectionWithItsReason) {
  CountAnswer(environment_, Arrived(&model_),
              MakeError(absl::StatusCode::kCancelled, "canceled in the queue",
                        {"CANCELLED_IN_QUEUE", {}, ""}));
  EXPECT_THAT(metrics_.Text(),
              HasSubstr("encoderd_rejections_total{model=\"fake\","
                        "reason=\"CANCELLED_IN_QUEUE\"} 1\n"));
}

TEST_F(AnsweredCallTest, ALimitOfTheCallersTokenIsNoSignOfAFullServer) {
  CountAnswer(environment_, Arrived(&model_),
              CallerFullError(QueueUnit::kTokens, 2, 1, 2, "max_queue_tokens"));
  CountAnswer(
      environment_, Arrived(&model_),
      QueueFullError(QueueUnit::kTokens, 2, 1, 2, "--max_queue_tokens"));
  const std::string text = metrics_.Text();
  for (const char* outcome : {"invalid", "refused"}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat(
                          "encoderd_requests_total{code=\"RESOURCE_EXHAUSTED\","
                          "method=\"Embed\",model=\"fake\",outcome=\"",
                          outcome, "\"} 1\n")));
  }
}

TEST_F(AnsweredCallTest, ARefusedStreamTakesNoTimeAndNoModel) {
  Trace(1);
  CountRefusedStream(environment_, metrics_.ForMethod("Embed"),
                     DrainingError());
  const std::string text = metrics_.Text();
  for (const char* sample :
       {"encoderd_requests_total{code=\"UNAVAILABLE\",method=\"Embed\","
        "model=\"\",outcome=\"refused\"} 1\n",
        "encoderd_request_duration_seconds_sum{method=\"Embed\",model=\"\","
        "outcome=\"refused\"} 0\n",
        "encoderd_rejections_total{model=\"\",reason=\"DRAINING\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(sample));
  }
  EXPECT_THAT(Spans(), IsEmpty());
}

TEST_F(AnsweredCallTest, ATracedCallEndsAsASpan) {
  Trace(1);
  const absl::Time before = SteadyNow();
  CallWork work;
  work.tokens = 5;
  const CallRecord answered = Arrived(&model_);
  EXPECT_GE(answered.arrival, before);
  EXPECT_LE(answered.arrival, SteadyNow());
  ASSERT_TRUE(answered.trace.has_value());
  CountAnswer(environment_, answered, absl::OkStatus(), work);
  CountAnswer(environment_, Arrived(), NotFound());
  const std::vector<CallSpan>& spans = Spans();
  ASSERT_THAT(spans, SizeIs(2));
  EXPECT_EQ(spans[0].context.trace_id, answered.trace->trace_id);
  EXPECT_EQ(spans[0].method, "Embed");
  EXPECT_EQ(spans[0].model, "fake");
  EXPECT_EQ(spans[0].code, absl::StatusCode::kOk);
  EXPECT_EQ(spans[0].reason, "");
  EXPECT_EQ(spans[0].work.tokens, 5);
  EXPECT_LE(spans[0].arrived, spans[0].answered);
  EXPECT_EQ(spans[1].model, "");
  EXPECT_EQ(spans[1].code, absl::StatusCode::kNotFound);
  EXPECT_EQ(spans[1].reason, "MODEL_NOT_FOUND");
  EXPECT_EQ(spans[1].work.tokens, 0);
}

TEST_F(AnsweredCallTest, ACallThatIsNotSampledIsCountedWithoutASpan) {
  Trace(0);
  const CallRecord record = Arrived(&model_);
  EXPECT_FALSE(record.trace.has_value());
  CountAnswer(environment_, record, absl::OkStatus());
  EXPECT_THAT(Spans(), IsEmpty());
  EXPECT_THAT(metrics_.Text(), HasSubstr("encoderd_requests_total{code=\"OK\","
                                         "method=\"Embed\",model=\"fake\","
                                         "outcome=\"ok\"} 1\n"));
}

}  // namespace
}  // namespace encoderd
