// A server that takes fewer inputs in a call than the client sends.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "client/cpp/error.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/inputs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_encoder_service.h"

namespace encoderd::client {
namespace {

using encoderd::testing::FakeEncoderService;
using encoderd::testing::FakeError;
using encoderd::testing::FakeVector;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<std::string> Texts(int count) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) texts.push_back(absl::StrCat("text ", i));
  return texts;
}

TEST(SplitInHalvesTest, KeepsInputsErrorsAndOtherFields) {
  const absl::Status bad = absl::InvalidArgumentError("bad");
  Cut cut = {10, {0, -1, 1, -1, 2}, {{}, bad, {}, bad, {}}};
  v1::EmbedRequest request, rest;
  request.set_model("a");
  for (const char* text : {"zero", "two", "four"}) {
    request.add_inputs()->set_text(text);
  }
  const Cut second = SplitInHalves(&cut, &request, &rest);
  EXPECT_EQ(cut.first_input, 10);
  EXPECT_THAT(cut.sent_as, ElementsAre(0, -1));
  EXPECT_THAT(cut.errors, ElementsAre(absl::OkStatus(), bad));
  ASSERT_EQ(request.inputs_size(), 1);
  EXPECT_EQ(request.inputs(0).text(), "zero");
  EXPECT_EQ(second.first_input, 12);
  EXPECT_THAT(second.sent_as, ElementsAre(0, -1, 1));
  EXPECT_THAT(second.errors,
              ElementsAre(absl::OkStatus(), bad, absl::OkStatus()));
  ASSERT_EQ(rest.inputs_size(), 2);
  EXPECT_EQ(rest.inputs(0).text(), "two");
  EXPECT_EQ(rest.inputs(1).text(), "four");
  EXPECT_EQ(request.model(), "a");
  EXPECT_EQ(rest.model(), "a");
}

// The sizes of the calls that a cutter of calls of eight makes of nine inputs
// after a refusal of eight.
std::vector<int> SizesAfter(const std::map<std::string, std::string>& told) {
  int left = 9;
  InputCutter cutter(
      [&left](v1::Input* input, absl::Status*) {
        input->set_text("one");
        return left-- > 0;
      },
      nullptr, /*max_inputs=*/8, /*max_bytes=*/1 << 20, /*per_input=*/false);
  cutter.TakeFewer(FromGrpc(FakeError(grpc::StatusCode::INVALID_ARGUMENT,
                                      "too many", kTooManyInputs, told),
                            0),
                   8);
  std::vector<int> sizes;
  while (true) {
    v1::EmbedRequest request;
    if (cutter.Next(request.mutable_inputs()).sent_as.empty()) return sizes;
    sizes.push_back(request.inputs_size());
  }
}

TEST(InputCutterTest, CutsAsManyInputsAsTheServerSaysThatItTakes) {
  EXPECT_THAT(SizesAfter({{"limit", "5"}}), ElementsAre(5, 4));
  EXPECT_THAT(SizesAfter({}), ElementsAre(4, 4, 1));
  for (const char* nonsense : {"8", "100", "many", ""}) {
    EXPECT_THAT(SizesAfter({{"limit", nonsense}}), ElementsAre(4, 4, 1));
  }
  for (const char* nonsense : {"0", "-1"}) {
    EXPECT_EQ(SizesAfter({{"limit", nonsense}}).size(), 9u);
  }
}

class FewerInputsTest : public ::testing::Test {
 protected:
  FewerInputsTest() { service_.SetMaxInputs(3); }

  std::unique_ptr<Client> Connect() {
    ClientOptions options;
    options.texts_per_call = 8;
    options.calls_in_flight = 2;
    auto client = Client::Connect(service_.target(), options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  // How many calls, or requests of a stream, were refused.
  int Refused() const {
    int refused = 0;
    for (const int size : service_.call_sizes()) refused += size > 3 ? 1 : 0;
    return refused;
  }

  FakeEncoderService service_;
};

TEST_F(FewerInputsTest, AListIsSentInCallsThatTheServerTakes) {
  const std::vector<std::string> texts = Texts(100);
  const auto matrix = Connect()->Embed(texts);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  ASSERT_EQ(matrix->rows, 100);
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(matrix->row(i), ElementsAreArray(FakeVector(texts[i]))) << i;
  }
  EXPECT_LE(Refused(), 2 * 3);  // of each call in flight: 8, 4 and 4
}

TEST_F(FewerInputsTest, AnInputThatIsNotSentKeepsItsPlace) {
  std::vector<std::string> texts = Texts(8);
  for (const int at : {0, 1, 6}) texts[at] = "not utf-8 \xff";
  EmbedOptions embed;
  embed.on_error = v1::ON_ERROR_PER_INPUT;
  const auto matrix = Connect()->Embed(texts, embed);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  for (int i = 0; i < 8; ++i) {
    const bool bad = i < 2 || i == 6;
    EXPECT_EQ(GetReason(matrix->errors[i]), bad ? "INVALID_UTF8" : "") << i;
    if (bad) continue;
    EXPECT_THAT(matrix->row(i), ElementsAreArray(FakeVector(texts[i]))) << i;
  }
}

TEST_F(FewerInputsTest, AStreamIsSentInRequestsThatTheServerTakes) {
  const std::vector<std::string> texts = Texts(100);
  BulkOptions options;
  options.texts_per_call = 8;
  options.calls_in_flight = 2;
  size_t next = 0, done = 0;
  const absl::Status status = Connect()->EmbedBulk(
      [&](v1::Input* input, absl::Status*) {
        if (next == texts.size()) return false;
        input->set_text(texts[next++]);
        return true;
      },
      {}, options,
      [&](const BulkAnswer& answer) {
        EXPECT_EQ(answer.first_input, static_cast<int64_t>(done));
        for (const absl::Status& error : answer.errors) {
          EXPECT_TRUE(error.ok()) << error;
        }
        done += answer.errors.size();
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(done, texts.size());
  EXPECT_LE(Refused(), 2 * 3);
  EXPECT_EQ(service_.streams(), 1);
}

TEST_F(FewerInputsTest, AServerThatTakesNoneEndsTheList) {
  service_.FailNext(1 << 30,
                    FakeError(grpc::StatusCode::INVALID_ARGUMENT, "too many",
                              kTooManyInputs, {{"limit", "0"}}));
  EXPECT_EQ(GetReason(Connect()->Embed(Texts(20)).status()), kTooManyInputs);
  EXPECT_LE(service_.embed_calls(), 2 * 4);
}

}  // namespace
}  // namespace encoderd::client
