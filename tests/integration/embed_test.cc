// Embed, Encode, Tokenize, ListModels and GetModel over real gRPC, against a
// device whose every bit is known.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/base/steady_time.h"
#include "tests/support/patience.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Unpacked(const std::string& packed) {
  std::vector<float> values(packed.size() / sizeof(float));
  std::memcpy(values.data(), packed.data(), packed.size());
  return values;
}

TEST(EmbedTest, GivesOneVectorForEachInputInOrder) {
  TestServer server;
  v1::EmbedResponse response;
  v1::EmbedRequest request = TextRequest({"one", "two", "three"});
  request.set_request_id("id-7");
  ASSERT_TRUE(server.Embed(request, &response).ok());
  EXPECT_EQ(response.model(), "fake");
  EXPECT_EQ(response.request_id(), "id-7");
  EXPECT_EQ(response.fingerprint(), std::string(16, '0'));
  ASSERT_EQ(response.embeddings_size(), 3);
  EXPECT_EQ(Floats(response.embeddings(0)), server.Expected("one"));
  EXPECT_EQ(Floats(response.embeddings(1)), server.Expected("two"));
  EXPECT_EQ(Floats(response.embeddings(2)), server.Expected("three"));
  EXPECT_EQ(response.embeddings(2).token_count(), 7);
  EXPECT_FALSE(response.embeddings(2).truncated());
  EXPECT_EQ(response.usage().tokens(), 5 + 5 + 7);
}

TEST(EmbedTest, SaysHowLongItWaitedAndWasComputed) {
  FakeModelOptions fake;
  fake.batch_time = absl::Milliseconds(20);
  TestServer server(fake);
  v1::EmbedResponse response;
  const absl::Time begin = SteadyNow();
  ASSERT_TRUE(server.Embed(TextRequest({"one"}), &response).ok());
  const absl::Duration all = SteadyNow() - begin;
  const v1::Usage& usage = response.usage();
  EXPECT_GE(usage.compute_ms(), 20);
  EXPECT_LE(usage.tokenize_ms() + usage.queue_ms() + usage.compute_ms(),
            absl::ToDoubleMilliseconds(all));
  EXPECT_EQ(TestServer::Sample(server.MetricsText(),
                               "encoderd_stage_duration_seconds_count"
                               "{stage=\"reply\"}"),
            1);
}

TEST(EmbedTest, PacksTheSameBitsAsLittleEndianBytes) {
  TestServer server;
  v1::EmbedRequest request = TextRequest({"packed"});
  request.mutable_options()->set_packed(true);
  v1::EmbedResponse response;
  ASSERT_TRUE(server.Embed(request, &response).ok());
  EXPECT_EQ(Unpacked(response.embeddings(0).packed()),
            server.Expected("packed"));
}

TEST(EmbedTest, CutsDimensionsAndNormalisesAgain) {
  TestServer server;
  v1::EmbedRequest request = TextRequest({"short"});
  request.mutable_options()->set_dimensions(3);
  v1::EmbedResponse response;
  ASSERT_TRUE(server.Embed(request, &response).ok());
  const std::vector<float> values = Floats(response.embeddings(0));
  const std::vector<float> whole = server.Expected("short");
  ASSERT_EQ(values.size(), 3u);
  double norm = 0;
  for (float value : values) norm += double{value} * value;
  EXPECT_NEAR(norm, 1, 1e-6);
  EXPECT_NEAR(values[0] / values[1], whole[0] / whole[1], 1e-4);
}

TEST(EmbedTest, CutsDimensionsAndLeavesThemWhereNormalisingIsOff) {
  TestServer server;
  v1::EmbedRequest request = TextRequest({"short"});
  request.mutable_options()->set_normalize(false);
  v1::EmbedResponse whole;
  ASSERT_TRUE(server.Embed(request, &whole).ok());
  request.mutable_options()->set_dimensions(2);
  v1::EmbedResponse cut;
  ASSERT_TRUE(server.Embed(request, &cut).ok());
  EXPECT_THAT(cut.embeddings(0).floats().values(),
              ElementsAre(whole.embeddings(0).floats().values(0),
                          whole.embeddings(0).floats().values(1)));
}

TEST(EmbedTest, PutsThePromptBeforeEachText) {
  TestServer server;
  v1::EmbedRequest request = TextRequest({"text"});
  request.mutable_options()->set_prompt_name("query");
  v1::EmbedResponse response;
  ASSERT_TRUE(server.Embed(request, &response).ok());
  EXPECT_EQ(Floats(response.embeddings(0)), server.Expected("q: text"));
  std::string text(255, 'a');  // a token each; two are special
  *request.mutable_inputs(0)->mutable_text() = text;
  const RpcError error = ReadError(server.Embed(request, &response));
  EXPECT_EQ(error.reason, "INPUT_TOO_LONG");
  EXPECT_THAT(error.message,
              HasSubstr("takes at most 256, its prompt 'query' included: "));
}

TEST(EmbedTest, WhitespaceOnlyIsATextLikeAnyOther) {
  TestServer server;
  v1::EmbedResponse response;
  EXPECT_TRUE(
      server.Embed(TextRequest({" \t\n", std::string("\0", 1)}), &response)
          .ok());
}

TEST(EmbedTest, TakesExactlyMaxLenAndRefusesOneMore) {
  TestServer server;
  v1::EmbedResponse response;
  ASSERT_TRUE(server.Embed(TextRequest({Letters(256)}), &response).ok());
  EXPECT_EQ(response.embeddings(0).token_count(), 256);

  const RpcError error = ReadError(server.Embed(
      TextRequest({"fine", "also fine", Letters(257)}), &response));
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "INPUT_TOO_LONG");
  EXPECT_EQ(error.metadata.at("input_index"), "2");
  EXPECT_EQ(error.metadata.at("token_count"), "257");
  EXPECT_EQ(error.metadata.at("max_tokens"), "256");
  ASSERT_EQ(error.violations.size(), 1u);
  EXPECT_EQ(error.violations[0].first, "inputs[2].text");
  EXPECT_THAT(error.message, ::testing::HasSubstr("257"));
  EXPECT_THAT(error.message, ::testing::HasSubstr("256"));
}

TEST(EmbedTest, MaxLenFlagMovesTheLimit) {
  ServerConfig config = TestConfig();
  config.max_len = 512;
  TestServer server({}, config);
  v1::EmbedResponse response;
  EXPECT_TRUE(server.Embed(TextRequest({Letters(512)}), &response).ok());
  const RpcError error =
      ReadError(server.Embed(TextRequest({Letters(513)}), &response));
  EXPECT_EQ(error.reason, "INPUT_TOO_LONG");
  EXPECT_EQ(error.metadata.at("max_tokens"), "512");
}

TEST(EmbedTest, MaxLenBeyondThePositionTableIsRefusedAtStart) {
  ServerConfig config = TestConfig();
  config.max_len = 513;
  TestServer server(TestServer::NotLoaded(), {}, config);
  const absl::Status status = server.Load();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("513"));
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("512"));
}

TEST(EmbedTest, AHundredPositionsTakeFiftyAndAHundredButNotOneMore) {
  FakeModelOptions fake;
  fake.positions = 100;
  fake.max_len = 100;
  TestServer server(fake);
  v1::EmbedResponse response;
  EXPECT_TRUE(server.Embed(TextRequest({Letters(50)}), &response).ok());
  EXPECT_TRUE(server.Embed(TextRequest({Letters(100)}), &response).ok());
  const RpcError error =
      ReadError(server.Embed(TextRequest({Letters(101)}), &response));
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.metadata.at("token_count"), "101");
  EXPECT_EQ(error.metadata.at("max_tokens"), "100");
}

TEST(EmbedTest, CutsOnlyWhenAskedToAndSaysSo) {
  TestServer server;
  v1::EmbedRequest request = TextRequest({Letters(300), "short"});
  request.mutable_options()->set_truncate(v1::TRUNCATE_END);
  v1::EmbedResponse response;
  ASSERT_TRUE(server.Embed(request, &response).ok());
  EXPECT_TRUE(response.embeddings(0).truncated());
  EXPECT_EQ(response.embeddings(0).token_count(), 300);
  EXPECT_FALSE(response.embeddings(1).truncated());
  EXPECT_EQ(response.usage().tokens(), 256 + 7);
}

TEST(EmbedTest, NeighboursOfARefusedInputKeepTheirBits) {
  TestServer server;
  server.model().device().CloseGate();
  v1::EmbedResponse first, second, bad;
  grpc::Status bad_status;
  std::thread one([&] {
    EXPECT_TRUE(server.Embed(TextRequest({"neighbor one"}), &first).ok());
  });
  ASSERT_TRUE(server.model().device().WaitForBatchesAtGate(1));
  std::thread two([&] {
    EXPECT_TRUE(server.Embed(TextRequest({"neighbor two"}), &second).ok());
  });
  EXPECT_TRUE(Eventually([&] { return Queued(server) == 1; }));
  bad_status = server.Embed(TextRequest({"in between", Letters(257)}), &bad);
  server.model().device().OpenGate();
  one.join();
  two.join();
  EXPECT_EQ(ReadError(bad_status).reason, "INPUT_TOO_LONG");
  EXPECT_EQ(Floats(first.embeddings(0)), server.Expected("neighbor one"));
  EXPECT_EQ(Floats(second.embeddings(0)), server.Expected("neighbor two"));
}

TEST(EncodeTest, GivesTheStatesOfTheLayerAskedFor) {
  TestServer server;
  v1::EncodeRequest request;
  request.add_inputs()->set_text("abc");
  request.set_request_id("id-8");
  v1::EncodeResponse last, layer0;
  ASSERT_TRUE(server.Encode(request, &last).ok());
  EXPECT_EQ(last.request_id(), "id-8");
  EXPECT_EQ(last.usage().tokens(), 5u);
  request.set_layer(0);
  ASSERT_TRUE(server.Encode(request, &layer0).ok());
  ASSERT_EQ(layer0.states_size(), 1);
  EXPECT_EQ(layer0.states(0).rows(), 5u);
  EXPECT_EQ(layer0.states(0).columns(), 8u);
  EXPECT_EQ(layer0.states(0).packed().size(), 5u * 8 * sizeof(float));
  EXPECT_NE(layer0.states(0).packed(), last.states(0).packed());
  request.set_layer(2);
  v1::EncodeResponse layer2;
  ASSERT_TRUE(server.Encode(request, &layer2).ok());
  EXPECT_EQ(layer2.states(0).packed(), last.states(0).packed());
}

TEST(EncodeTest, RefusesALayerPastTheLast) {
  TestServer server;
  v1::EncodeRequest request;
  request.add_inputs()->set_text("abc");
  request.set_layer(3);
  v1::EncodeResponse response;
  const RpcError error = ReadError(server.Encode(request, &response));
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "LAYER_OUT_OF_RANGE");
  EXPECT_EQ(error.metadata.at("layer"), "3");
  EXPECT_EQ(error.metadata.at("limit"), "2");
}

TEST(EncodeTest, RefusesAnAnswerAboveTheMessageLimit) {
  ServerConfig config = TestConfig();
  config.max_message_bytes = 64 << 10;
  FakeModelOptions fake;
  fake.hidden_size = 128;
  TestServer server(fake, config);
  v1::EncodeRequest request;
  request.add_inputs()->set_text(Letters(200));  // 100 KB of states
  v1::EncodeResponse response;
  const RpcError error = ReadError(server.Encode(request, &response));
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "REQUEST_TOO_LARGE");
  EXPECT_EQ(error.metadata.at("limit"), "65536");
}

TEST(TokenizeTest, GivesIdsTokensAndOffsetsOfAnyLength) {
  TestServer server;
  v1::TokenizeRequest request;
  request.add_inputs()->set_text("ab");
  request.add_inputs()->set_text(Letters(300));
  auto* pair = request.add_inputs()->mutable_pair();
  pair->set_first("a");
  pair->set_second("b");
  v1::TokenizeResponse response;
  ASSERT_TRUE(server.Tokenize(request, &response).ok());
  EXPECT_EQ(response.max_len(), 256u);
  const v1::TokenizedInput& text = response.inputs(0);
  EXPECT_THAT(text.ids(),
              ElementsAre(FakeTokenizer::kCls, FakeTokenizer::Id('a'),
                          FakeTokenizer::Id('b'), FakeTokenizer::kSep));
  EXPECT_EQ(text.tokens_size(), 4);
  EXPECT_EQ(text.begin_offsets_size(), 4);
  EXPECT_EQ(text.begin_offsets(2), 1u);
  EXPECT_EQ(text.end_offsets(2), 2u);
  EXPECT_TRUE(text.fits());
  EXPECT_EQ(response.inputs(1).token_count(), 300u);
  EXPECT_FALSE(response.inputs(1).fits());
  EXPECT_THAT(response.inputs(2).segment_ids(), ElementsAre(0, 0, 0, 1, 1));
  EXPECT_EQ(server.model().device().rows_computed(), 1);  // the warm-up's
}

TEST(TokenizeTest, RefusesAnAnswerAboveTheMessageLimit) {
  ServerConfig config = TestConfig();
  config.max_message_bytes = 64 << 10;
  TestServer server(FakeModelOptions(), config);
  v1::TokenizeRequest request;
  request.add_inputs()->set_text(std::string(3000, 'x'));
  v1::TokenizeResponse response;
  ASSERT_TRUE(server.Tokenize(request, &response).ok());

  request.mutable_inputs(0)->set_text(std::string(8000, 'x'));
  const RpcError error = ReadError(server.Tokenize(request, &response));
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "REQUEST_TOO_LARGE");
  EXPECT_EQ(error.metadata.at("limit"), "65536");
  EXPECT_GT(std::stol(error.metadata.at("reply_bytes")), 65536);
}

TEST(ModelsTest, DescribeTheModelInFull) {
  TestServer server;
  grpc::ClientContext context;
  v1::Model model;
  ASSERT_TRUE(server.stub().GetModel(&context, {}, &model).ok());
  EXPECT_EQ(model.name(), "fake");
  EXPECT_EQ(model.architecture(), "bert");
  EXPECT_EQ(model.hidden_size(), 8u);
  EXPECT_EQ(model.num_hidden_layers(), 2u);
  EXPECT_EQ(model.num_attention_heads(), 2u);
  EXPECT_EQ(model.intermediate_size(), 32u);
  EXPECT_EQ(model.max_len(), 256u);
  EXPECT_EQ(model.max_len_source(), v1::MAX_LEN_SOURCE_SENTENCE_TRANSFORMERS);
  EXPECT_EQ(model.token_table().rows(), 259u);
  EXPECT_EQ(model.position_table().rows(), 512u);
  EXPECT_EQ(model.position_table().columns(), 8u);
  EXPECT_EQ(model.position_table().parameters(), 4096u);
  EXPECT_EQ(model.segment_table().rows(), 2u);
  EXPECT_EQ(model.embedding_parameters(), (259 + 512 + 2 + 2) * 8u);
  const uint64_t layer = 4 * (8 * 8 + 8) + 2 * 8 * 32 + 32 + 8 + 4 * 8;
  EXPECT_THAT(model.layer_parameters(), ElementsAre(layer, layer));
  EXPECT_EQ(model.head_parameters(), 0u);
  EXPECT_EQ(model.total_parameters(), model.embedding_parameters() + 2 * layer);
  EXPECT_EQ(model.dimensions(), 8u);
  EXPECT_EQ(model.position_scheme(), "learned");
  EXPECT_EQ(model.pooling(), v1::POOLING_MEAN);
  EXPECT_TRUE(model.normalize());
  EXPECT_EQ(model.dtype(), "fp32");
  EXPECT_EQ(model.device(), "fake");
  EXPECT_EQ(model.tokenizer(), "Bytes");
  EXPECT_EQ(model.vocab_size(), 259u);
  EXPECT_EQ(model.weights_sha256().size(), 64u);
  EXPECT_EQ(model.fingerprint(), std::string(16, '0'));
  EXPECT_EQ(model.prompts().at("query"), "q: ");
  EXPECT_EQ(model.max_inputs_per_request(), 1024u);

  grpc::ClientContext list_context;
  v1::ListModelsResponse list;
  ASSERT_TRUE(server.stub().ListModels(&list_context, {}, &list).ok());
  ASSERT_EQ(list.models_size(), 1);
  // Not by bytes: a map has no order on the wire.
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(list.models(0),
                                                                 model));
}

}  // namespace
}  // namespace encoderd
