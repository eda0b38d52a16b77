// Encode: any layer, of all tokens or of the span without special tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/test_server.h"

namespace encoderd {
namespace {

constexpr size_t kRow = 8 * sizeof(float);

class EncodeSpanTest : public ::testing::Test {
 protected:
  v1::EncodeResponse Encode(const v1::EncodeRequest& request) {
    v1::EncodeResponse response;
    const grpc::Status status = server_.Encode(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.fingerprint(), std::string(16, '0'));
    return response;
  }
  // Of every layer and of the sum before the first norm: the span's rows are
  // `rows` of all of them.
  void ExpectRows(v1::EncodeRequest request, const std::vector<size_t>& rows) {
    for (const int layer : {-1, 0, 1, 2}) {
      request.set_layer(std::max(layer, 0));
      request.set_before_norm(layer < 0);
      request.set_span(v1::TOKEN_SPAN_ALL);
      const v1::TokenStates all = Encode(request).states(0);
      EXPECT_EQ(all.packed().size(), all.rows() * kRow);
      request.set_span(v1::TOKEN_SPAN_WITHOUT_SPECIAL_TOKENS);
      const v1::TokenStates span = Encode(request).states(0);
      EXPECT_EQ(span.rows(), rows.size());
      EXPECT_EQ(span.columns(), 8u);
      EXPECT_EQ(span.token_count(), all.token_count());
      EXPECT_EQ(span.truncated(), all.truncated());
      std::string expected;
      for (const size_t row : rows) {
        expected += all.packed().substr(row * kRow, kRow);
      }
      EXPECT_EQ(span.packed(), expected) << "layer " << layer;
    }
  }
  RpcError Refused(const v1::EncodeRequest& request) {
    v1::EncodeResponse response;
    const RpcError error = ReadError(server_.Encode(request, &response));
    EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(error.reason, "INVALID_OPTION");
    return error;
  }

  TestServer server_;
};

TEST_F(EncodeSpanTest, OfATextLiesBetweenTheTemplatesTokens) {
  v1::EncodeRequest request;
  request.add_inputs()->set_text("abc");
  ExpectRows(request, {1, 2, 3});
}

TEST_F(EncodeSpanTest, OfAPairIsBothTexts) {
  v1::EncodeRequest request;
  request.add_inputs()->mutable_pair()->set_first("ab");
  request.mutable_inputs(0)->mutable_pair()->set_second("cde");
  ExpectRows(request, {1, 2, 4, 5, 6});
}

TEST_F(EncodeSpanTest, OfTokenIdsIsWithoutTheTokenizersSpecialTokens) {
  v1::EncodeRequest request;
  v1::TokenIds* tokens = request.add_inputs()->mutable_tokens();
  for (const uint32_t id : {1, 50, 2, 60, 61, 2, 0}) tokens->add_ids(id);
  ExpectRows(request, {1, 3, 4});
}

TEST_F(EncodeSpanTest, OfACutTextIsWhatIsLeft) {
  FakeModelOptions fake;
  fake.positions = fake.max_len = 8;
  TestServer small(fake);
  v1::EncodeRequest request;
  request.add_inputs()->mutable_pair()->set_first("abcdefgh");
  request.mutable_inputs(0)->mutable_pair()->set_second("xy");
  request.set_truncate(v1::TRUNCATE_START);
  request.set_span(v1::TOKEN_SPAN_WITHOUT_SPECIAL_TOKENS);
  v1::EncodeResponse cut;
  ASSERT_TRUE(small.Encode(request, &cut).ok());
  EXPECT_EQ(cut.states(0).rows(), 5u);
  EXPECT_EQ(cut.states(0).token_count(), 13u);
  EXPECT_TRUE(cut.states(0).truncated());
  request.mutable_inputs(0)->mutable_pair()->set_first("fgh");
  v1::EncodeResponse kept;
  ASSERT_TRUE(small.Encode(request, &kept).ok());
  EXPECT_EQ(kept.states(0).packed(), cut.states(0).packed());
}

TEST_F(EncodeSpanTest, OfNothingButSpecialTokensIsEmpty) {
  v1::EncodeRequest request;
  request.add_inputs()->mutable_tokens()->add_ids(FakeTokenizer::kCls);
  request.mutable_inputs(0)->mutable_tokens()->add_ids(FakeTokenizer::kSep);
  ExpectRows(request, {});
}

TEST_F(EncodeSpanTest, TheSumBeforeTheNormIsTheEnginesTableSum) {
  v1::EncodeRequest request;
  request.add_inputs()->mutable_tokens()->add_ids(77);
  request.set_layer(0);
  request.set_before_norm(true);
  const v1::EncodeResponse response = Encode(request);
  TokenSequence sequence;
  sequence.token_ids = {77};
  SequenceOutput output;
  output.kind = SequenceOutput::Kind::kStates;
  output.layer = kTableSum;
  const std::vector<float> expected = server_.model().device().Expected(
      sequence, server_.model().info().limits, output);
  ASSERT_EQ(response.states(0).packed().size(), expected.size() * 4);
  EXPECT_EQ(std::memcmp(response.states(0).packed().data(), expected.data(),
                        expected.size() * 4),
            0);
}

TEST_F(EncodeSpanTest, OnlyLayerZeroHasASumBeforeItsNorm) {
  v1::EncodeRequest request;
  request.add_inputs()->set_text("abc");
  request.set_before_norm(true);
  RpcError error = Refused(request);
  EXPECT_EQ(error.message,
            "before_norm is set with layer 2 (unset: the last); only layer 0 "
            "has a state before its norm");
  EXPECT_EQ(error.violations[0].first, "before_norm");
  EXPECT_EQ(error.metadata.at("value"), "2");
  EXPECT_EQ(error.metadata.at("limit"), "0");
  request.set_layer(1);
  EXPECT_EQ(Refused(request).metadata.at("value"), "1");
}

TEST_F(EncodeSpanTest, AnUnknownSpanIsRefused) {
  v1::EncodeRequest request;
  request.add_inputs()->set_text("abc");
  request.set_span(static_cast<v1::TokenSpan>(3));
  const RpcError error = Refused(request);
  EXPECT_EQ(error.violations[0].first, "span");
  EXPECT_EQ(error.metadata.at("value"), "3");
  EXPECT_EQ(error.metadata.at("limit"), "2");
}

TEST(EncodeBoundsTest, StatesAboveTheMessageLimitAreRefusedBeforeCompute) {
  ServerConfig config = TestConfig();
  config.max_message_bytes = 64 << 10;
  TestServer server(FakeModelOptions(), config);
  v1::EncodeRequest request;
  for (int i = 0; i < 9; ++i) request.add_inputs()->set_text(Letters(250));
  v1::EncodeResponse response;
  const int64_t warm_up = server.model().device().rows_computed();
  const RpcError error = ReadError(server.Encode(request, &response));
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "REQUEST_TOO_LARGE");
  EXPECT_EQ(error.metadata.at("reply_bytes"), "72000");  // 9 x 250 rows
  EXPECT_EQ(error.metadata.at("limit"), "65536");
  EXPECT_EQ(error.violations[0].first, "inputs");
  EXPECT_EQ(server.model().device().rows_computed(), warm_up);
  request.mutable_inputs()->RemoveLast();
  EXPECT_TRUE(server.Encode(request, &response).ok());
}

TEST(EncodeBoundsTest, VectorsAboveTheMessageLimitAreRefusedBeforeCompute) {
  ServerConfig config = TestConfig();
  config.max_message_bytes = 64 << 10;
  FakeModelOptions fake;
  fake.hidden_size = 2048;
  TestServer server(fake, config);
  v1::EmbedResponse response;
  const int64_t warm_up = server.model().device().rows_computed();
  const RpcError error = ReadError(
      server.Embed(TextRequest(std::vector<std::string>(9, "x")), &response));
  EXPECT_EQ(error.reason, "REQUEST_TOO_LARGE");
  EXPECT_EQ(error.metadata.at("reply_bytes"), "73728");
  EXPECT_EQ(server.model().device().rows_computed(), warm_up);
  EXPECT_TRUE(
      server.Embed(TextRequest(std::vector<std::string>(7, "x")), &response)
          .ok());
}

}  // namespace
}  // namespace encoderd
