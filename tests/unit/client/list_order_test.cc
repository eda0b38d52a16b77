// Lists longer than one call whose later calls are answered first.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "client/cpp/error.h"
#include "client/cpp/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/patience.h"

namespace encoderd::client {
namespace {

using encoderd::testing::FakeEncoderService;
using encoderd::testing::FakeVector;
using ::testing::ElementsAreArray;

// Answers the call whose first text is `held` once the one whose first text is
// `last` is answered.
class HoldingService : public FakeEncoderService {
 public:
  HoldingService(const std::string& held, const std::string& last)
      : held_(held), last_(last) {}

  grpc::Status Embed(grpc::ServerContext* context,
                     const v1::EmbedRequest* request,
                     v1::EmbedResponse* response) override {
    const std::string& first = request->inputs(0).text();
    if (first == held_) {
      overtaken_ = answered_.WaitForNotificationWithTimeout(kPatience);
    }
    const grpc::Status status =
        FakeEncoderService::Embed(context, request, response);
    if (first == last_) answered_.Notify();
    return status;
  }

  bool overtaken() const { return overtaken_; }

 private:
  const std::string held_;
  const std::string last_;
  SteadyNotification answered_;
  std::atomic<bool> overtaken_{false};
};

std::vector<std::string> Texts(int count) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) texts.push_back(absl::StrCat("text ", i));
  return texts;
}

absl::StatusOr<EmbeddingMatrix> Embed(const HoldingService& service,
                                      const std::vector<std::string>& texts,
                                      int texts_per_call) {
  ClientOptions options;
  options.texts_per_call = texts_per_call;
  options.calls_in_flight = static_cast<int>(texts.size()) / texts_per_call;
  auto client = Client::Connect(service.target(), options);
  if (!client.ok()) return client.status();
  return (*client)->Embed(texts);
}

TEST(ListOrderTest, IsThatOfTheListWhenTheFirstCallIsAnsweredLast) {
  const std::vector<std::string> texts = Texts(40);
  HoldingService service(texts[0], texts[36]);
  const auto matrix = Embed(service, texts, 4);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_TRUE(service.overtaken());
  for (int i = 0; i < 40; ++i) {
    EXPECT_THAT(matrix->row(i), ElementsAreArray(FakeVector(texts[i]))) << i;
  }
}

TEST(ListOrderTest, TheFirstErrorOfTheListIsReportedThoughALaterOneIsFaster) {
  std::vector<std::string> texts = Texts(8);
  texts[1] = "a b c d e f g";
  texts[5] = "a b c d e f g h i";
  HoldingService service(texts[0], texts[4]);
  EXPECT_EQ(GetInputIndex(Embed(service, texts, 2).status()), 1);
  EXPECT_TRUE(service.overtaken());
}

}  // namespace
}  // namespace encoderd::client
