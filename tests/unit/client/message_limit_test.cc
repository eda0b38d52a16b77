// Requests above the limit of the server's messages: once a refusal has named
// the limit, no more of them are sent.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/calls.h"
#include "client/cpp/client.h"
#include "client/cpp/error.h"
#include "client/cpp/grpc_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/held_port.h"

namespace encoderd::client {
namespace {

using encoderd::testing::FakeDoor;
using encoderd::testing::FakeEncoderService;
using ::testing::ElementsAre;
using OneCall = Call<v1::EmbedRequest, v1::EmbedResponse>;

absl::Status Full(const std::string& words) {
  return absl::ResourceExhaustedError(words);
}

TEST(LargestRequestTest, IsTheLimitThatGrpcNames) {
  for (const char* words : {"Received message larger than max (9 vs. 4)",
                            "SERVER: Received message larger than max (9 vs 4)",
                            "message larger than max (9 vs 4)"}) {
    EXPECT_EQ(LargestRequest(Full(words), 9), 4) << words;
    EXPECT_EQ(LargestRequest(Full(words), 8), std::nullopt) << words;
    EXPECT_EQ(LargestRequest(absl::UnavailableError(words), 9), std::nullopt);
  }
  for (const char* words :
       {"larger than max (9 vs. 9)", "larger than max (9 vs. 0)",
        "larger than max (9 vs. many)", "larger than max (9 vs",
        "RST_STREAM"}) {
    EXPECT_EQ(LargestRequest(Full(words), 9), std::nullopt) << words;
  }
}

TEST(LargestRequestTest, IsKnownFromThisClientsOwnRefusalToo) {
  const absl::Status status = FromGrpc(TooLargeFor(9, 4), 0);
  EXPECT_EQ(LargestRequest(status, 9), 4) << status;
  const absl::Status named = NameTooLarge(status, Cut{7, {0}, {{}}}, 9);
  EXPECT_EQ(Describe(named),
            "INVALID_ARGUMENT (REQUEST_TOO_LARGE): inputs[7] makes a message "
            "of 9 bytes, more than the server takes: Received message larger "
            "than max (9 vs. 4)");
  EXPECT_EQ(GetErrorDetails(named)->metadata.at("limit"), "4");
}

// A list of calls of one input each, one at a time. start: begins the call of
// input `input`. Returns the reason of each input's error.
std::vector<std::string> Reasons(
    const std::vector<std::string>& texts,
    const std::function<grpc::Status(int input, OneCall* call)>& start) {
  const std::function<bool()> stop;
  CallOptions options{/*max_in_flight=*/1, /*timeout=*/absl::Hours(2), stop};
  options.per_input = true;
  options.await_return = [](const absl::Status&) { return true; };
  size_t made = 0;
  std::vector<std::string> reasons;
  const absl::Status status = RunCalls<v1::EmbedRequest, v1::EmbedResponse>(
      options,
      [&](v1::EmbedRequest* request) {
        Cut cut;
        if (made == texts.size()) return cut;
        request->add_inputs()->set_text(texts[made]);
        cut = {static_cast<int64_t>(made), {0}, {{}}};
        ++made;
        return cut;
      },
      [&](OneCall* call) {
        call->status = start(static_cast<int>(call->cut.first_input), call);
        call->done->Notify();
      },
      [&](const OneCall& call) {
        const absl::Status& error = call.cut.errors[0];
        reasons.push_back(GetReason(error));
        if (!error.ok()) {
          EXPECT_EQ(GetInputIndex(error), call.cut.first_input);
        }
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  return reasons;
}

grpc::Status RefuseAbove(int64_t limit, const OneCall& call) {
  return call.Bytes() > limit ? TooLargeFor(call.Bytes(), limit)
                              : grpc::Status();
}

TEST(MessageLimitTest, ACallThatIsKnownToBeTooLargeIsNotSent) {
  std::vector<int> sent;
  EXPECT_THAT(Reasons({"a", "longer", "b", "longer", "longest", "c"},
                      [&](int input, OneCall* call) {
                        sent.push_back(input);
                        return RefuseAbove(8, *call);
                      }),
              ElementsAre("", kRequestTooLarge, "", kRequestTooLarge,
                          kRequestTooLarge, ""));
  EXPECT_THAT(sent, ElementsAre(0, 1, 2, 5));
}

TEST(MessageLimitTest, AServerThatReturnsMayTakeMore) {
  std::map<int, int> attempts;
  EXPECT_THAT(Reasons({"a", "longer", "b", "longer"},
                      [&](int input, OneCall* call) {
                        const bool gone = input == 2 && ++attempts[2] == 1;
                        if (gone) {
                          return grpc::Status(grpc::StatusCode::UNAVAILABLE,
                                              "Socket closed");
                        }
                        return RefuseAbove(input < 2 ? 8 : 100, *call);
                      }),
              ElementsAre("", kRequestTooLarge, "", ""));
}

// Of texts in bulk, one in flight at a time; each is a request. after: is told
// how many were answered.
std::vector<std::string> BulkReasons(
    const std::string& target, const std::vector<std::string>& texts,
    const std::function<void(size_t done)>& after) {
  ClientOptions connection;
  connection.service_config_json = "{}";  // gRPC itself tries once
  const auto client = Client::Connect(target, connection);
  EXPECT_TRUE(client.ok()) << client.status();
  BulkOptions options;
  options.texts_per_call = options.calls_in_flight = 1;
  size_t next = 0;
  std::vector<std::string> reasons;
  const absl::Status status = (*client)->EmbedBulk(
      [&](v1::Input* input, absl::Status*) {
        if (next == texts.size()) return false;
        input->set_text(texts[next++]);
        return true;
      },
      {}, options,
      [&](const BulkAnswer& answer) {
        reasons.push_back(GetReason(answer.errors[0]));
        after(reasons.size());
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  return reasons;
}

const std::string kLarge(3 << 19, 'x');
constexpr int kMib = 1 << 20;

// A refused request would end the stream each time.
TEST(MessageLimitTest, ARequestThatIsKnownToBeTooLargeEndsNoStream) {
  FakeEncoderService service(0, {}, kMib);
  EXPECT_THAT(
      BulkReasons(service.target(), {"a", kLarge, "b", kLarge, kLarge, "c"},
                  [](size_t) {}),
      ElementsAre("", kRequestTooLarge, "", kRequestTooLarge, kRequestTooLarge,
                  ""));
  EXPECT_EQ(service.streams(), 2);
}

TEST(MessageLimitTest, AServerOfAStreamThatIsOpenedAgainMayTakeMore) {
  const HeldPort port;
  auto service =
      std::make_unique<FakeEncoderService>(port.port(), FakeDoor{}, kMib);
  EXPECT_THAT(BulkReasons(service->target(), {kLarge, "a", "b", kLarge},
                          [&](size_t done) {
                            if (done != 2) return;
                            service.reset();
                            service = std::make_unique<FakeEncoderService>(
                                port.port(), FakeDoor{}, 2 * kMib);
                          }),
              ElementsAre(kRequestTooLarge, "", "", ""));
}

}  // namespace
}  // namespace encoderd::client
