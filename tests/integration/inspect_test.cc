// InspectPositions over gRPC; the fake model's rows are sinusoids, or random
// from one of them on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "encoderd/v1/encoder.grpc.pb.h"
#include "engine/checkpoint/position_inspection.h"
#include "engine/checkpoint/positions.h"
#include "tests/support/patience.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

class InspectTest : public ::testing::Test {
 protected:
  explicit InspectTest(const FakeModelOptions& fake = {}) : server_(fake) {}

  grpc::Status Inspect(uint32_t first, uint32_t count, bool matrices = false) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    v1::InspectPositionsRequest request;
    request.set_first_row(first);
    request.set_row_count(count);
    request.set_cosine(matrices);
    request.set_values(matrices);
    response_.Clear();
    return server_.stub().InspectPositions(&context, request, &response_);
  }

  static std::vector<float> Floats(const std::string& bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  TestServer server_;
  v1::InspectPositionsResponse response_;
};

TEST_F(InspectTest, GivesFiguresAndAVerdictOfTheWholeTable) {
  ASSERT_TRUE(Inspect(0, 0).ok());
  EXPECT_EQ(response_.model(), "fake");
  EXPECT_EQ(response_.position_scheme(), "learned");
  EXPECT_EQ(response_.table_rows(), 512u);
  EXPECT_EQ(response_.columns(), 8u);
  EXPECT_EQ(response_.first_row(), 0u);
  EXPECT_EQ(response_.row_count(), 512u);
  ASSERT_EQ(response_.norms_size(), 512);
  for (const float norm : response_.norms()) EXPECT_NEAR(norm, 2.0f, 1e-6);
  ASSERT_EQ(response_.profile_size(), 9);  // 1, 2, 4 ... 256
  EXPECT_EQ(response_.profile(8).distance(), 256u);
  EXPECT_EQ(response_.verdict(), v1::POSITION_VERDICT_TRAINED);
  EXPECT_EQ(response_.verdict_cosine(),
            response_.profile(0).mean_centered_cosine());
  EXPECT_LT(response_.verdict_cosine(), response_.profile(0).mean_cosine());
  EXPECT_NEAR(response_.threshold(), 6 / std::sqrt(8.0 * 511), 1e-6);
  EXPECT_TRUE(response_.cosine().empty());
  EXPECT_TRUE(response_.values().empty());
}

TEST_F(InspectTest, GivesTheRowsAndTheirCosinesWhenAsked) {
  ASSERT_TRUE(Inspect(100, 3, true).ok());
  const std::vector<float> values = Floats(response_.values());
  ASSERT_EQ(values.size(), 24u);
  std::vector<float> row(8);
  SinusoidalRow(101, 8, row.data());
  EXPECT_EQ(std::vector<float>(values.begin() + 8, values.begin() + 16), row);
  const std::vector<float> cosine = Floats(response_.cosine());
  ASSERT_EQ(cosine.size(), 9u);
  EXPECT_NEAR(cosine[4], 1, 1e-6);
  EXPECT_EQ(cosine[1], cosine[3]);
  EXPECT_NEAR(cosine[1], response_.profile(0).mean_cosine(), 1e-4);
  EXPECT_EQ(response_.verdict(), v1::POSITION_VERDICT_UNSPECIFIED);  // few rows
}

TEST_F(InspectTest, RefusesRowsThatTheTableDoesNotHave) {
  EXPECT_TRUE(Inspect(511, 1).ok());
  EXPECT_EQ(response_.verdict(), v1::POSITION_VERDICT_UNSPECIFIED);
  RpcError error = ReadError(Inspect(512, 0));
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "ROWS_OUT_OF_RANGE");
  EXPECT_EQ(error.metadata.at("first_row"), "512");
  EXPECT_EQ(error.metadata.at("row_count"), "0");
  EXPECT_EQ(error.metadata.at("limit"), "512");
  error = ReadError(Inspect(510, 3));
  EXPECT_EQ(error.reason, "ROWS_OUT_OF_RANGE");
  EXPECT_EQ(error.metadata.at("row_count"), "3");
  error = ReadError(Inspect(4294967295u, 1024));
  EXPECT_EQ(error.reason, "ROWS_OUT_OF_RANGE");
}

TEST_F(InspectTest, CountsCallsAndRefusalsInTheMetrics) {
  ASSERT_TRUE(Inspect(0, 4).ok());
  ASSERT_FALSE(Inspect(600, 4).ok());
  const std::string text = server_.MetricsText();
  EXPECT_EQ(TestServer::Sample(text,
                               "encoderd_requests_total{code=\"OK\","
                               "method=\"InspectPositions\"}"),
            1);
  EXPECT_EQ(
      TestServer::Sample(
          text, "encoderd_rejections_total{reason=\"ROWS_OUT_OF_RANGE\"}"),
      1);
}

TEST_F(InspectTest, KnowsTheModelsName) {
  grpc::ClientContext context;
  v1::InspectPositionsRequest request;
  request.set_model("other");
  const RpcError error =
      ReadError(server_.stub().InspectPositions(&context, request, &response_));
  EXPECT_EQ(error.reason, "MODEL_NOT_FOUND");
}

class HalfTrainedTest : public InspectTest {
 protected:
  HalfTrainedTest() : InspectTest(Fake()) {}

 private:
  static FakeModelOptions Fake() {
    FakeModelOptions options;
    options.hidden_size = 64;
    options.random_from = 256;
    return options;
  }
};

TEST_F(HalfTrainedTest, TheVerdictIsThatOfTheRowsAskedFor) {
  const struct {
    uint32_t first, count;
    v1::PositionVerdict verdict;
  } kCases[] = {{0, 512, v1::POSITION_VERDICT_PARTLY_TRAINED},
                {200, 300, v1::POSITION_VERDICT_PARTLY_TRAINED},
                {0, 250, v1::POSITION_VERDICT_TRAINED},
                {260, 200, v1::POSITION_VERDICT_LOOKS_RANDOM}};
  for (const auto& test : kCases) {
    ASSERT_TRUE(Inspect(test.first, test.count).ok());
    EXPECT_EQ(response_.verdict(), test.verdict) << test.first;
    const PositionInspection expected = InspectPositionRows(
        server_.model().position_rows(), test.first, test.count);
    EXPECT_EQ(response_.change_row(), expected.change_row) << test.first;
    EXPECT_EQ(response_.change_row() > 0,
              test.verdict == v1::POSITION_VERDICT_PARTLY_TRAINED);
  }
}

TEST(InspectBoundsTest, AnAnswerAboveTheMessageLimitIsRefusedWithoutAField) {
  ServerConfig config = TestConfig();
  config.max_message_bytes = 64 << 10;
  TestServer server({}, config);
  v1::InspectPositionsRequest request;
  request.set_cosine(true);
  const auto inspect = [&] {
    grpc::ClientContext context;
    v1::InspectPositionsResponse response;
    return server.stub().InspectPositions(&context, request, &response);
  };
  const RpcError error = ReadError(inspect());
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "REQUEST_TOO_LARGE");
  EXPECT_EQ(error.metadata.at("reply_bytes"), "1050624");  // 512 x 513 floats
  EXPECT_EQ(error.metadata.at("limit"), "65536");
  EXPECT_TRUE(error.violations.empty());
  EXPECT_THAT(error.message, ::testing::EndsWith("request less"));
  request.set_row_count(100);
  EXPECT_TRUE(inspect().ok());
}

class LongTableTest : public InspectTest {
 protected:
  LongTableTest() : InspectTest(Fake()) {}

 private:
  static FakeModelOptions Fake() {
    FakeModelOptions options;
    options.positions = 3000;
    return options;
  }
};

TEST_F(LongTableTest, GivesAThousandAndTwentyFourRowsAtMost) {
  ASSERT_TRUE(Inspect(0, 0).ok());
  EXPECT_EQ(response_.row_count(), 1024u);
  ASSERT_TRUE(Inspect(1976, 1024, true).ok());
  EXPECT_EQ(response_.cosine().size(), 4u * 1024 * 1024);
  ASSERT_TRUE(Inspect(2500, 0).ok());
  EXPECT_EQ(response_.row_count(), 500u);
  const RpcError error = ReadError(Inspect(0, 1025));
  EXPECT_EQ(error.reason, "INVALID_OPTION");
  EXPECT_EQ(error.metadata.at("value"), "1025");
  EXPECT_EQ(error.metadata.at("limit"), "1024");
}

}  // namespace
}  // namespace encoderd
