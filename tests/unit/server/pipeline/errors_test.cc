#include "server/pipeline/errors.h"

#include <map>
#include <set>
#include <string>

#include "engine/base/error.h"
#include "gtest/gtest.h"

namespace encoderd {
namespace {

absl::Status EngineError(const std::string& message, const std::string& field) {
  return MakeError(absl::StatusCode::kInvalidArgument, message,
                   {"REASON", {{"limit", "3"}}, field});
}

std::string FieldOf(const InputFault& fault) {
  return GetErrorDetail(fault.status)->field;
}

TEST(InputFaultTest, NamesTheInputInMessageFieldAndMetadata) {
  const InputFault fault = MakeInputFault(
      3, "text", EngineError("the input has 9 tokens; at most 3", ""));
  EXPECT_EQ(fault.status.message(), "inputs[3] has 9 tokens; at most 3");
  const auto detail = GetErrorDetail(fault.status);
  EXPECT_EQ(detail->reason, "REASON");
  EXPECT_EQ(detail->field, "inputs[3].text");
  EXPECT_EQ(detail->metadata.at("input_index"), "3");
  EXPECT_EQ(detail->metadata.at("limit"), "3");
}

TEST(InputFaultTest, BlamesTheFieldThatTheCallerFilled) {
  const auto error = [](const char* field) {
    return EngineError("token id 9 at index 0 is outside", field);
  };
  EXPECT_EQ(MakeInputFault(0, "tokens", error("tokens.ids")).status.message(),
            "inputs[0]: token id 9 at index 0 is outside");
  EXPECT_EQ(FieldOf(MakeInputFault(0, "tokens", error("tokens.ids"))),
            "inputs[0].tokens.ids");
  EXPECT_EQ(FieldOf(MakeInputFault(0, "tokens", error("tokens.segment_ids"))),
            "inputs[0].tokens.segment_ids");
  EXPECT_EQ(FieldOf(MakeInputFault(0, "tokens", error(""))),
            "inputs[0].tokens.ids");
  EXPECT_EQ(FieldOf(MakeInputFault(1, "text", error("text"))),
            "inputs[1].text");
  EXPECT_EQ(FieldOf(MakeInputFault(1, "text", error("tokens.ids"))),
            "inputs[1].text");
  EXPECT_EQ(FieldOf(MakeInputFault(1, "pair", error("first"))),
            "inputs[1].pair.first");
  EXPECT_EQ(FieldOf(MakeInputFault(1, "pair", error(""))), "inputs[1].pair");
  EXPECT_EQ(FieldOf(MakeInputFault(1, "", error(""))), "inputs[1]");
}

TEST(InputFaultTest, ASingleFaultStandsAsItIs) {
  const InputFault fault = MakeInputFault(4, "text", EngineError("bad", ""));
  EXPECT_EQ(CombineInputFaults({fault}, 1), fault.status);
}

TEST(InputFaultTest, ATooLongInputComesWithAdviceForItsKind) {
  const auto advised = [](const char* content) {
    const InputFault fault = MakeInputFault(
        1, content,
        MakeError(absl::StatusCode::kInvalidArgument,
                  "the input has 9 tokens; this model takes at most 3",
                  {"INPUT_TOO_LONG", {}, ""}));
    const absl::Status told = CombineInputFaults({fault}, 1);
    EXPECT_EQ(told, WithAdvice(fault.status));
    const auto detail = GetErrorDetail(told);
    EXPECT_EQ(detail->violations.at(0).field, detail->field);
    EXPECT_EQ(detail->violations.at(0).description, fault.status.message());
    return std::string(told.message());
  };
  const std::string fault =
      "inputs[1] has 9 tokens; this model takes at most 3";
  EXPECT_EQ(advised("text"),
            fault +
                ": split it, or set options.truncate (Encode: truncate) to "
                "TRUNCATE_END, or options.windows (Embed)");
  EXPECT_EQ(advised("pair"),
            fault +
                ": shorten it, or set options.truncate (Encode: truncate) "
                "to TRUNCATE_END; windows are for texts only");
  EXPECT_EQ(advised("tokens"), fault + ": shorten it; token ids are never cut");
}

TEST(InputFaultTest, ManyFaultsFitIntoAStatusAndTheRestIsCounted) {
  std::vector<InputFault> faults;
  for (int i = 40; i > 0; --i) {
    faults.push_back(MakeInputFault(
        i, "text",
        EngineError("the input has 1000000 tokens; this model takes at most 3",
                    "")));
  }
  const absl::Status status = CombineInputFaults(faults, 1000);
  const auto detail = GetErrorDetail(status);
  ASSERT_EQ(detail->violations.size(), size_t{kMaxViolations});
  EXPECT_EQ(detail->violations.front().field, "inputs[1].text");
  EXPECT_EQ(detail->violations.back().field, "inputs[16].text");
  EXPECT_EQ(detail->metadata.at("omitted_violations"), "984");
  EXPECT_EQ(status.message(),
            "inputs[1] has 1000000 tokens; this model takes at most 3 (and 999 "
            "more)");
  size_t bytes = status.message().size();
  for (const Violation& violation : detail->violations) {
    bytes += violation.field.size() + violation.description.size();
  }
  EXPECT_LT(bytes, 2048u);
}

TEST(QueueErrorTest, SaysThatTokensAreEstimatesAndCallsAreNot) {
  EXPECT_EQ(QueueFullError(QueueUnit::kTokens, 90, 20, 100).message(),
            "the queue holds about 90 tokens and this request adds about 20; "
            "the limit is 100: retry later");
  EXPECT_EQ(CallerFullError(QueueUnit::kCalls, 4, 1, 4).message(),
            "this caller has 4 calls and this request adds 1; the limit is 4: "
            "retry later");
  EXPECT_EQ(StreamsFullError(3, 3).message(),
            "the server has 3 streams and this request adds 1; "
            "--max_streams is 3: retry later");
}

TEST(QueueErrorTest, NamesTheUnitInMessageAndMetadata) {
  const absl::Status full = QueueFullError(QueueUnit::kBytes, 90, 20, 100);
  EXPECT_EQ(full.message(),
            "the queue holds 90 bytes and this request adds 20; the limit is "
            "100: retry later");
  const std::map<std::string, std::string> expected = {
      {"queued_bytes", "90"}, {"request_bytes", "20"}, {"limit", "100"}};
  EXPECT_EQ(GetErrorDetail(full)->metadata, expected);
}

TEST(QueueErrorTest, ATooLargeRequestMayBeOneLongText) {
  EXPECT_EQ(RequestTooLargeError(QueueUnit::kBytes, 30, 20).message(),
            "the request has 30 bytes; the queue holds at most 20: send fewer "
            "inputs per request, or split a long text");
}

TEST(QueueErrorTest, SaysWhoseLimitEndedTheWaiting) {
  EXPECT_EQ(ExpiredError().message(),
            "the caller's deadline passed while the request waited: allow more "
            "time, or send fewer inputs per request");
  EXPECT_TRUE(GetErrorDetail(ExpiredError())->metadata.empty());
  const absl::Status limited = ExpiredError(absl::Minutes(10));
  EXPECT_EQ(limited.message(),
            "the request waited for 600000 ms, the server's --max_queue_time: "
            "retry when the server is less busy, or raise --max_queue_time");
  EXPECT_EQ(GetErrorDetail(limited)->metadata.at("max_queue_ms"), "600000");
}

TEST(ErrorIdTest, IsNeverTheSameTwice) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(NewErrorId());
  EXPECT_EQ(ids.size(), 1000u);
  EXPECT_EQ(ids.begin()->size(), 16u);
}

TEST(DeviceFaultTest, TellsTheCallerNothingOfTheMachineButTheIdOfTheLog) {
  const absl::Status cause = absl::InternalError("/dev/secret is on fire");
  const absl::Status told =
      DeviceFaultError(absl::StatusCode::kInternal, "abc", "the device failed");
  EXPECT_EQ(told.message(), "the device failed; error id abc");
  EXPECT_EQ(GetErrorDetail(told)->metadata.at("error_id"), "abc");
  const absl::Status logged = DeviceFaultForLog(cause, "abc");
  EXPECT_EQ(logged.message(), cause.message());
  EXPECT_EQ(GetErrorDetail(logged)->metadata.at("error_id"), "abc");
}

}  // namespace
}  // namespace encoderd
