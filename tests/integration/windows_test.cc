// Texts past max_len: cut, or computed in windows, and never without the answer
// saying so. The reference of a window is a call with its ids alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

FakeModelOptions Short() {
  FakeModelOptions fake;
  fake.positions = 16;
  fake.max_len = 16;
  return fake;
}

class WindowsTest : public ::testing::Test {
 protected:
  WindowsTest() : server_(Short()) {}

  static v1::EmbedRequest Windowed(const std::vector<std::string>& texts,
                                   uint32_t overlap) {
    v1::EmbedRequest request = TextRequest(texts);
    request.mutable_options()->mutable_windows()->set_overlap(overlap);
    return request;
  }
  v1::EmbedResponse Embed(const v1::EmbedRequest& request) {
    v1::EmbedResponse response;
    const grpc::Status status = server_.Embed(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  RpcError Refused(const v1::EmbedRequest& request) {
    v1::EmbedResponse response;
    return ReadError(server_.Embed(request, &response));
  }
  // The average of single calls, one for each window.
  std::vector<double> Reference(const std::string& text, size_t overlap,
                                bool normalize) {
    constexpr size_t kRoom = 14;
    std::vector<double> sums;
    double weights = 0;
    for (size_t begin = 0; begin + overlap < text.size();
         begin += kRoom - overlap) {
      const std::string part = text.substr(begin, kRoom);
      v1::EmbedRequest single;
      v1::TokenIds* tokens = single.add_inputs()->mutable_tokens();
      tokens->add_ids(FakeTokenizer::kCls);
      for (const char c : part) tokens->add_ids(FakeTokenizer::Id(c));
      tokens->add_ids(FakeTokenizer::kSep);
      single.mutable_options()->set_normalize(false);
      const std::vector<float> values = Floats(Embed(single).embeddings(0));
      sums.resize(values.size());
      for (size_t h = 0; h < values.size(); ++h) {
        sums[h] += static_cast<double>(part.size()) * values[h];
      }
      weights += static_cast<double>(part.size());
    }
    double squares = 0;
    for (double& sum : sums) {
      sum /= weights;
      squares += sum * sum;
    }
    for (double& sum : sums) sum /= normalize ? std::sqrt(squares) : 1;
    return sums;
  }

  TestServer server_;
};

void ExpectNear(const std::vector<float>& values,
                const std::vector<double>& reference) {
  ASSERT_EQ(values.size(), reference.size());
  for (size_t h = 0; h < values.size(); ++h) {
    // Roundings to float of an average and of a norm's quotient.
    EXPECT_NEAR(values[h], reference[h], 2.4e-7 * std::fabs(reference[h]));
  }
}

TEST_F(WindowsTest, AreTheAverageOfSingleCallsWeighedByTheirTokens) {
  const std::string text = Letters(42);  // 40 tokens and two special ones
  for (const uint32_t overlap : {0u, 1u, 5u, 7u}) {
    for (const bool normalize : {true, false}) {
      v1::EmbedRequest request = Windowed({text}, overlap);
      request.mutable_options()->set_normalize(normalize);
      const v1::EmbedResponse response = Embed(request);
      const v1::Embedding& embedding = response.embeddings(0);
      ExpectNear(Floats(embedding), Reference(text, overlap, normalize));
      const uint32_t stride = 14 - overlap;
      const uint32_t windows = (40 - overlap + stride - 1) / stride;
      EXPECT_EQ(embedding.windows(), windows);
      EXPECT_EQ(embedding.token_count(), 42u);
      EXPECT_FALSE(embedding.truncated());
      EXPECT_EQ(response.usage().tokens(),
                40 + (windows - 1) * overlap + 2 * windows);
    }
  }
}

TEST_F(WindowsTest, ATextThatFitsIsAsItWouldBeWithout) {
  const v1::EmbedResponse response = Embed(Windowed({Letters(16)}, 3));
  EXPECT_EQ(Floats(response.embeddings(0)), server_.Expected(Letters(16)));
  EXPECT_EQ(response.embeddings(0).windows(), 0u);
  EXPECT_EQ(response.usage().tokens(), 16u);
}

TEST_F(WindowsTest, GiveTheSameBitsInAnyBatch) {
  const std::string text = Letters(1000);
  const std::vector<float> alone =
      Floats(Embed(Windowed({text}, 4)).embeddings(0));
  std::vector<std::string> company;
  for (int i = 3; i < 60; ++i) company.push_back(Letters(i));
  company.insert(company.begin() + 20, text);
  company.push_back(text);
  const v1::EmbedResponse together = Embed(Windowed(company, 4));
  ASSERT_EQ(together.embeddings_size(), 59);
  EXPECT_EQ(Floats(together.embeddings(20)), alone);
  EXPECT_EQ(Floats(together.embeddings(58)), alone);
  EXPECT_EQ(Floats(together.embeddings(0)), server_.Expected(company[0]));
}

TEST_F(WindowsTest, AreCutToDimensionsAndPackedLikeAnyVector) {
  v1::EmbedRequest request = Windowed({Letters(42)}, 2);
  const std::vector<float> whole = Floats(Embed(request).embeddings(0));
  request.mutable_options()->set_dimensions(3);
  const std::vector<float> cut = Floats(Embed(request).embeddings(0));
  ASSERT_EQ(cut.size(), 3u);
  EXPECT_NEAR(cut[0] / cut[1], whole[0] / whole[1], 1e-4);
  request.mutable_options()->clear_dimensions();
  request.mutable_options()->set_encoding(v1::ENCODING_UBINARY);
  const std::string bits = Embed(request).embeddings(0).packed();
  ASSERT_EQ(bits.size(), 1u);
  for (size_t h = 0; h < 8; ++h) {
    EXPECT_EQ((static_cast<unsigned char>(bits[0]) >> (7 - h)) & 1,
              whole[h] > 0 ? 1 : 0);
  }
}

TEST_F(WindowsTest, AreForTextsOnly) {
  v1::EmbedRequest request = Windowed({}, 3);
  auto* pair = request.add_inputs()->mutable_pair();
  pair->set_first(Letters(12));
  pair->set_second(Letters(12));
  RpcError error = Refused(request);
  EXPECT_EQ(error.reason, "INPUT_TOO_LONG");
  EXPECT_EQ(error.violations[0].first, "inputs[0].pair");

  request = Windowed({}, 3);
  request.add_inputs()->mutable_tokens()->mutable_ids()->Resize(17, 7);
  error = Refused(request);
  EXPECT_EQ(error.reason, "INPUT_TOO_LONG");
  EXPECT_EQ(error.metadata.at("token_count"), "17");
}

TEST_F(WindowsTest, NotTogetherWithACut) {
  for (const v1::Truncate truncate : {v1::TRUNCATE_START, v1::TRUNCATE_END}) {
    v1::EmbedRequest request = Windowed({"x"}, 3);
    request.mutable_options()->set_truncate(truncate);
    const RpcError error = Refused(request);
    EXPECT_EQ(error.reason, "INVALID_OPTION");
    EXPECT_EQ(error.violations[0].first, "options.windows");
    EXPECT_EQ(error.metadata.at("value"), v1::Truncate_Name(truncate));
  }
  v1::EmbedRequest request = Windowed({"x"}, 3);
  request.mutable_options()->set_truncate(v1::TRUNCATE_NONE);
  Embed(request);
}

TEST_F(WindowsTest, AnOverlapOfMoreThanHalfAWindowIsRefused) {
  Embed(Windowed({Letters(100)}, 7));
  for (const uint32_t overlap : {8u, 4294967295u}) {
    const RpcError error = Refused(Windowed({"x"}, overlap));
    EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(error.reason, "INVALID_OPTION");
    EXPECT_EQ(error.violations[0].first, "options.windows.overlap");
    EXPECT_EQ(error.metadata.at("value"), absl::StrCat(overlap));
    EXPECT_EQ(error.metadata.at("limit"), "7");
  }
}

TEST_F(WindowsTest, AMillionTokensAreRefusedWithTheirNumber) {
  // 14 tokens of the text a window, and 2 special ones.
  RpcError error = Refused(Windowed({std::string(1000000, 'x')}, 0));
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "REQUEST_TOO_LARGE");
  EXPECT_EQ(error.metadata.at("request_tokens"),
            absl::StrCat(1000000 + 2 * 71429));
  EXPECT_EQ(error.metadata.at("limit"), "524288");
  // Every seventh token begins a window; none of them is made.
  error = Refused(Windowed({std::string(1000000, 'x')}, 7));
  EXPECT_EQ(error.metadata.at("request_tokens"),
            absl::StrCat(1000000 + 142856 * 7 + 142857 * 2));
  // Texts below the limit count together.
  error = Refused(
      Windowed(std::vector<std::string>(3, std::string(200000, 'x')), 0));
  EXPECT_EQ(error.reason, "REQUEST_TOO_LARGE");
  EXPECT_EQ(server_.model().device().rows_computed(), 1);  // the warm-up's
  Embed(Windowed({std::string(10000, 'x')}, 3));
}

TEST_F(WindowsTest, OneThatFailsOnTheDeviceFailsItsTextAlone) {
  server_.model().device().PoisonToken(FakeTokenizer::Id('#'));
  v1::EmbedRequest request =
      Windowed({Letters(40), Letters(20) + "#" + Letters(20), Letters(30)}, 3);
  request.mutable_options()->set_on_error(v1::ON_ERROR_PER_INPUT);
  const v1::EmbedResponse response = Embed(request);
  ASSERT_EQ(response.embeddings_size(), 3);
  EXPECT_EQ(ReadError(response.embeddings(1).error()).reason, "DEVICE_FAULT");
  EXPECT_EQ(response.embeddings(1).windows(), 0u);
  ExpectNear(Floats(response.embeddings(0)), Reference(Letters(40), 3, true));
  ExpectNear(Floats(response.embeddings(2)), Reference(Letters(30), 3, true));
}

// Of a pair the longer text is cut first, down to the other's length, then
// both.
TEST_F(WindowsTest, ACutPairLosesTokensOfItsLongerText) {
  const struct {
    std::string first, second;
    v1::Truncate truncate;
    std::string kept_first, kept_second;
  } cases[] = {
      {"abcdefghijklmnop", "xyz", v1::TRUNCATE_END, "abcdefghij", "xyz"},
      {"abcdefghijklmnop", "xyz", v1::TRUNCATE_START, "ghijklmnop", "xyz"},
      {"ab", "cdefghijklmnopqr", v1::TRUNCATE_END, "ab", "cdefghijklm"},
      {"ab", "cdefghijklmnopqr", v1::TRUNCATE_START, "ab", "hijklmnopqr"},
  };
  for (const auto& one : cases) {
    v1::EmbedRequest request;
    request.mutable_options()->set_truncate(one.truncate);
    auto* pair = request.add_inputs()->mutable_pair();
    pair->set_first(one.first);
    pair->set_second(one.second);
    const v1::EmbedResponse cut = Embed(request);
    EXPECT_TRUE(cut.embeddings(0).truncated());
    EXPECT_EQ(cut.embeddings(0).token_count(),
              one.first.size() + one.second.size() + 3);
    EXPECT_EQ(cut.usage().tokens(), 16u);
    request.mutable_inputs(0)->mutable_pair()->set_first(one.kept_first);
    request.mutable_inputs(0)->mutable_pair()->set_second(one.kept_second);
    const v1::EmbedResponse kept = Embed(request);
    EXPECT_FALSE(kept.embeddings(0).truncated());
    EXPECT_EQ(Floats(cut.embeddings(0)), Floats(kept.embeddings(0)));
  }
  v1::EmbedRequest both;
  both.mutable_options()->set_truncate(v1::TRUNCATE_END);
  auto* pair = both.add_inputs()->mutable_pair();
  pair->set_first(Letters(100));
  pair->set_second(Letters(90));
  EXPECT_EQ(Embed(both).usage().tokens(), 16u);
}

}  // namespace
}  // namespace encoderd
