#include "server/rpc/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace encoderd {
namespace {

template <typename Message>
Message Detail(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  Message message;
  for (const auto& any : details.details()) {
    if (any.UnpackTo(&message)) break;
  }
  return message;
}

TEST(StatusTest, CarriesReasonNumbersAndField) {
  const grpc::Status status = ToGrpcStatus(
      MakeError(absl::StatusCode::kInvalidArgument, "inputs[3] is long",
                {"INPUT_TOO_LONG", {{"max_tokens", "512"}}, "inputs[3].text"}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "inputs[3] is long");
  const auto info = Detail<google::rpc::ErrorInfo>(status);
  EXPECT_EQ(info.reason(), "INPUT_TOO_LONG");
  EXPECT_EQ(info.domain(), "encoderd");
  EXPECT_EQ(info.metadata().at("max_tokens"), "512");
  const auto bad = Detail<google::rpc::BadRequest>(status);
  ASSERT_EQ(bad.field_violations_size(), 1);
  EXPECT_EQ(bad.field_violations(0).field(), "inputs[3].text");
  EXPECT_EQ(bad.field_violations(0).description(), "inputs[3] is long");
}

TEST(StatusTest, TellsWhenToComeBackOnlyWhereItHelps) {
  const auto delay = [](absl::StatusCode code, const char* reason) {
    return RetryDelay(MakeError(code, "m", {reason, {}, ""}));
  };
  using absl::StatusCode;
  EXPECT_EQ(delay(StatusCode::kResourceExhausted, "QUEUE_FULL"),
            absl::Milliseconds(100));
  EXPECT_EQ(delay(StatusCode::kUnavailable, "LOADING"),
            absl::Milliseconds(500));
  EXPECT_EQ(delay(StatusCode::kUnavailable, "DRAINING"), absl::Seconds(1));
  EXPECT_EQ(delay(StatusCode::kInvalidArgument, "INPUT_TOO_LONG"),
            std::nullopt);
  EXPECT_EQ(delay(StatusCode::kDeadlineExceeded, "EXPIRED_IN_QUEUE"),
            std::nullopt);
  const grpc::Status status = ToGrpcStatus(
      MakeError(StatusCode::kUnavailable, "m", {"DRAINING", {}, ""}));
  EXPECT_EQ(Detail<google::rpc::RetryInfo>(status).retry_delay().seconds(), 1);
}

TEST(StatusTest, StaysBelowFourKibibytesWhateverItIsGiven) {
  ErrorDetail detail{"INPUT_TOO_LONG", {}, "inputs[0].text"};
  for (int i = 0; i < kMaxViolations; ++i) {
    detail.violations.push_back(
        {absl::StrCat("inputs[", i, "].text"), std::string(2000, 'v')});
  }
  detail.metadata["omitted_violations"] = "984";
  detail.metadata["model"] = std::string(100000, 'm');
  const grpc::Status status = ToGrpcStatus(MakeError(
      absl::StatusCode::kInvalidArgument, std::string(100000, 'x'), detail));
  EXPECT_LE(status.error_details().size() + status.error_message().size(),
            static_cast<size_t>(kMaxStatusBytes));
  const auto bad = Detail<google::rpc::BadRequest>(status);
  const int listed = bad.field_violations_size() - 1;
  EXPECT_EQ(bad.field_violations(listed).description(),
            absl::StrCat("and ", 1000 - listed, " more"));
}

TEST(StatusTest, GivesTheSameDetailsInsideAnAnswerAsInAStatus) {
  const absl::Status status =
      MakeError(absl::StatusCode::kInvalidArgument, "inputs[3] is long",
                {"INPUT_TOO_LONG", {{"max_tokens", "512"}}, "inputs[3].text"});
  const google::rpc::Status inside = ToRpcStatus(status);
  EXPECT_EQ(inside.code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(inside.message(), "inputs[3] is long");
  EXPECT_EQ(inside.SerializeAsString(), ToGrpcStatus(status).error_details());
}

TEST(StatusTest, CutsTextBetweenCharacters) {
  std::string message(511, 'x');
  message += "\xC3\xA9 and more";
  const grpc::Status status = ToGrpcStatus(MakeError(
      absl::StatusCode::kNotFound, message, {"MODEL_NOT_FOUND", {}, ""}));
  EXPECT_EQ(status.error_message(), std::string(511, 'x') + "...");
}

TEST(StatusTest, HidesWhatIsInternalBehindAnErrorId) {
  for (const absl::Status& status :
       {absl::InternalError("/secret/path"), absl::UnknownError("secret"),
        absl::InvalidArgumentError("secret, and without a reason")}) {
    const absl::Status published = Publish(status);
    EXPECT_EQ(published.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(published.message()),
                ::testing::Not(::testing::HasSubstr("secret")));
    EXPECT_EQ(ReasonOf(published), "INTERNAL_FAULT");
    EXPECT_FALSE(GetErrorDetail(published)->metadata.at("error_id").empty());
  }
  EXPECT_NE(Publish(absl::InternalError("a")).message(),
            Publish(absl::InternalError("a")).message());
}

TEST(StatusTest, LeavesNamedErrorsAsTheyAre) {
  const absl::Status refused = MakeError(absl::StatusCode::kInvalidArgument,
                                         "m", {"NO_INPUTS", {}, "inputs"});
  EXPECT_EQ(Publish(refused), refused);
  const absl::Status fault =
      MakeError(absl::StatusCode::kInternal, "m",
                {"DEVICE_FAULT", {{"error_id", "7"}}, ""});
  EXPECT_EQ(Publish(fault), fault);
}

}  // namespace
}  // namespace encoderd
