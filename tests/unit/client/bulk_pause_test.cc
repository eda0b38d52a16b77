// EmbedBulk: when a stream that was refused is opened again.
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/bulk.h"
#include "client/cpp/client.h"
#include "client/cpp/steady_time.h"
#include "google/protobuf/util/time_util.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "tests/support/fake_encoder_service.h"

namespace encoderd::client {
namespace {

using encoderd::testing::FakeEncoderService;
using encoderd::testing::FakeError;

// As with --max_streams.
TEST(BulkPauseTest, OpensARefusedStreamAgainWhenTheServerSaid) {
  const grpc::Status full = FakeError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                      "too many streams", "QUEUE_FULL", {});
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(full.error_details()));
  google::rpc::RetryInfo retry;  // much longer than the first backoff
  *retry.mutable_retry_delay() =
      google::protobuf::util::TimeUtil::SecondsToDuration(1);
  details.add_details()->PackFrom(retry);
  FakeEncoderService service;
  service.BreakStreams(1, 0,
                       grpc::Status(full.error_code(), full.error_message(),
                                    details.SerializeAsString()));
  const auto client = Client::Connect(service.target());
  ASSERT_TRUE(client.ok()) << client.status();
  bool given = false;
  const absl::Time start = SteadyNow();
  const absl::Status status = (*client)->EmbedBulk(
      {[&](v1::Input* input, absl::Status*) {
        input->set_text("text");
        return !std::exchange(given, true);
      }},
      {}, {}, [](const BulkAnswer&) { return absl::OkStatus(); });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GE(SteadyNow() - start, absl::Seconds(1));
  EXPECT_EQ(service.streams(), 2);
}

}  // namespace
}  // namespace encoderd::client
