#include "server/rpc/status.h"

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

TEST(StatusTest, TellsWhenToComeBack) {
  const grpc::Status status = ToGrpcStatus(
      MakeError(absl::StatusCode::kUnavailable, "m", {"DRAINING", {}, ""}));
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
            4096u);
  const auto bad = Detail<google::rpc::BadRequest>(status);
  const int listed = bad.field_violations_size() - 1;
  EXPECT_EQ(bad.field_violations(listed).description(),
            absl::StrCat("and ", 1000 - listed, " more"));
}

// What the errors of many inputs within one answer are held to.
TEST(StatusTest, DropsViolationsToStayBelowALowerLimit) {
  ErrorDetail detail{
      "INPUT_TOO_LONG", {{"max_tokens", "512"}}, "inputs[0].text"};
  for (int i = 0; i < kMaxViolations; ++i) {
    detail.violations.push_back(
        {absl::StrCat("inputs[", i, "].text"), std::string(200, 'v')});
  }
  const absl::Status status = MakeError(absl::StatusCode::kInvalidArgument,
                                        std::string(100000, 'x'), detail);
  EXPECT_GT(ToRpcStatus(status).ByteSizeLong(), 1024u);
  const google::rpc::Status inside = ToRpcStatus(status, 1024);
  EXPECT_LE(inside.ByteSizeLong(), 1024u);
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(inside.details(0).UnpackTo(&info));
  EXPECT_EQ(info.metadata().at("max_tokens"), "512");
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

}  // namespace
}  // namespace encoderd
