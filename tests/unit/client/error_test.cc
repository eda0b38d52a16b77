#include "client/cpp/error.h"

#include <cstdint>
#include <string>

#include "client/cpp/grpc_status.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "tests/support/fake_encoder_service.h"

namespace encoderd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

grpc::Status TooLong() {
  return encoderd::testing::FakeError(
      grpc::StatusCode::INVALID_ARGUMENT,
      "inputs[3] has 612 tokens; this model takes at most 512",
      "INPUT_TOO_LONG",
      {{"input_index", "3"}, {"max_tokens", "512"}, {"token_count", "612"}},
      "inputs[3].text");
}

TEST(ErrorTest, KeepsCodeMessageReasonMetadataAndField) {
  const absl::Status status = FromGrpc(TooLong(), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "inputs[3] has 612 tokens; this model takes at most 512");
  const auto details = GetErrorDetails(status);
  ASSERT_TRUE(details.has_value());
  EXPECT_EQ(details->reason, "INPUT_TOO_LONG");
  EXPECT_EQ(details->domain, "encoderd");
  EXPECT_THAT(details->metadata,
              ElementsAre(Pair("input_index", "3"), Pair("max_tokens", "512"),
                          Pair("token_count", "612")));
  ASSERT_EQ(details->violations.size(), 1u);
  EXPECT_EQ(details->violations[0].field, "inputs[3].text");
  EXPECT_FALSE(details->retry_delay.has_value());
}

TEST(ErrorTest, CountsInputsInTheCallersListNotInTheCall) {
  const absl::Status status = FromGrpc(TooLong(), 128);
  EXPECT_EQ(status.message(),
            "inputs[131] has 612 tokens; this model takes at most 512");
  EXPECT_EQ(GetInputIndex(status), 131);
  const auto details = GetErrorDetails(status);
  ASSERT_TRUE(details.has_value());
  EXPECT_EQ(details->metadata.at("input_index"), "131");
  EXPECT_EQ(details->metadata.at("token_count"), "612");
  EXPECT_EQ(details->violations[0].field, "inputs[131].text");
}

TEST(ErrorTest, LeavesTextThatOnlyLooksLikeAnIndexAlone) {
  const grpc::Status status(grpc::StatusCode::INTERNAL,
                            "inputs[x], inputs[, inputs[1] and inputs[2]");
  EXPECT_EQ(FromGrpc(status, 10).message(),
            "inputs[x], inputs[, inputs[11] and inputs[12]");
}

TEST(ErrorTest, ReadsThePauseThatTheServerAsksFor) {
  google::rpc::Status status;
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(1);
  retry.mutable_retry_delay()->set_nanos(500000000);
  status.add_details()->PackFrom(retry);
  const auto details = GetErrorDetails(
      FromGrpc(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full",
                            status.SerializeAsString()),
               0));
  ASSERT_TRUE(details.has_value());
  EXPECT_EQ(details->retry_delay, absl::Milliseconds(1500));
}

TEST(ErrorTest, HasNoDetailsForErrorsOfTheLibraryItself) {
  const grpc::Status refused(grpc::StatusCode::UNAVAILABLE, "refused");
  EXPECT_FALSE(GetErrorDetails(FromGrpc(refused, 0)).has_value());
  EXPECT_FALSE(GetErrorDetails(absl::OkStatus()).has_value());
  EXPECT_FALSE(GetInputIndex(FromGrpc(refused, 0)).has_value());
}

TEST(ErrorTest, SurvivesDetailsThatAreNotProtobuf) {
  const grpc::Status odd(grpc::StatusCode::INTERNAL, "odd", "\xff\xff\xff");
  const absl::Status status = FromGrpc(odd, 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(GetErrorDetails(status).has_value());
}

TEST(ErrorTest, TakesTheResetOfAHugeRequestForOneThatIsTooLarge) {
  constexpr int64_t kMib = int64_t{1} << 20;
  const absl::Status reset =
      absl::ResourceExhaustedError("Received RST_STREAM with error code 11");
  EXPECT_TRUE(IsTooLarge(reset, 300 * kMib));
  EXPECT_FALSE(IsTooLarge(reset, kMib));
  EXPECT_FALSE(IsTooLarge(absl::UnavailableError(reset.message()), 300 * kMib));
  const absl::Status full =
      FromGrpc(encoderd::testing::FakeError(
                   grpc::StatusCode::RESOURCE_EXHAUSTED,
                   std::string(reset.message()), "QUEUE_FULL", {}),
               0);
  EXPECT_FALSE(IsTooLarge(full, 300 * kMib));
  const absl::Status named =
      NameTooLarge(reset, Cut{7, {0}, {absl::OkStatus()}}, 300 * kMib);
  EXPECT_EQ(Describe(named),
            "INVALID_ARGUMENT (REQUEST_TOO_LARGE): inputs[7] makes a message "
            "of 314572800 bytes, more than the server takes: Received "
            "RST_STREAM with error code 11");
  EXPECT_EQ(GetInputIndex(named), 7);
}

TEST(ErrorTest, DescribesCodeReasonAndMessageInOneLine) {
  EXPECT_EQ(Describe(FromGrpc(TooLong(), 0)),
            "INVALID_ARGUMENT (INPUT_TOO_LONG): inputs[3] has 612 tokens; this "
            "model takes at most 512");
  EXPECT_EQ(Describe(absl::UnavailableError("refused")),
            "UNAVAILABLE: refused");
}

}  // namespace
}  // namespace encoderd::client
