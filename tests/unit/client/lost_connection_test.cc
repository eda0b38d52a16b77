// A server whose machine is gone: its connection stays open, and nothing comes.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/freezing_proxy.h"
#include "tests/support/patience.h"

namespace encoderd::client {
namespace {

class LostConnectionTest : public ::testing::Test {
 protected:
  LostConnectionTest() {
    ClientOptions options;
    options.timeout = kPatience;
    // Long enough that a live server on a slow machine is never given up.
    options.keepalive_time = absl::Seconds(4);
    client_ =
        Client::Connect(absl::StrCat("127.0.0.1:", proxy_.port()), options)
            .value();
  }

  encoderd::testing::FakeEncoderService service_;
  FreezingProxy proxy_{service_.port()};
  std::unique_ptr<Client> client_;
};

TEST_F(LostConnectionTest, ACallIsMadeAgainOverAnotherConnection) {
  ASSERT_TRUE(client_->Embed({"one"}).ok());
  EXPECT_EQ(proxy_.connections(), 1);
  proxy_.Freeze();
  const auto matrix = client_->Embed({"two"});
  EXPECT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(proxy_.connections(), 2);
}

TEST_F(LostConnectionTest, ABulkJobContinuesOverAnotherStream) {
  constexpr int64_t kTexts = 500;
  int64_t next = 0, done = 0;
  bool frozen = false;
  BulkOptions options;
  options.texts_per_call = 4;
  const absl::Status status =
      client_->EmbedBulk({[&](v1::Input* input, absl::Status*) {
                           if (next == kTexts) return false;
                           input->set_text(absl::StrCat("text ", next++));
                           return true;
                         }},
                         {}, options, [&](const BulkAnswer& answer) {
                           EXPECT_EQ(answer.first_input, done);
                           done += static_cast<int64_t>(answer.errors.size());
                           if (done >= 100 && !frozen) proxy_.Freeze();
                           frozen = done >= 100;
                           return absl::OkStatus();
                         });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(done, kTexts);
  EXPECT_EQ(service_.streams(), 2);
}

TEST_F(LostConnectionTest, RefusesAnInvalidKeepaliveTime) {
  ClientOptions options;
  options.keepalive_time = absl::ZeroDuration();
  const auto client = Client::Connect("127.0.0.1:1", options);
  EXPECT_EQ(client.status().message(),
            "keepalive_time in milliseconds is 0; it must be at least 1");
}

}  // namespace
}  // namespace encoderd::client
