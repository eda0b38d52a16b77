// The server with all-MiniLM-L6-v2 over real gRPC: limits, bits, description.
#include "engine/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "encoderd/v1/encoder.grpc.pb.h"
#include "engine/base/cgroup.h"
#include "grpcpp/create_channel.h"
#include "server/server.h"
#include "tests/support/random_checkpoint.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

using ::testing::HasSubstr;

std::string ModelFolder() {
  const char* folder = std::getenv("ENCODERD_TEST_MODEL");
  EXPECT_NE(folder, nullptr)
      << "ENCODERD_TEST_MODEL is not set: it is the folder that "
         "deploy/fetch-model.sh prints";
  return folder == nullptr ? "" : folder;
}

// "hello hello ..." of this many tokens, [CLS] and [SEP] included.
std::string Hellos(int tokens) {
  std::string text;
  for (int i = 0; i < tokens - 2; ++i) text += "hello ";
  return text;
}

class ModelTest : public ::testing::Test {
 protected:
  absl::Status Start(int max_len) { return Start(max_len, ModelFolder()); }
  absl::Status Start(int max_len, const std::string& folder,
                     ServerConfig config = TestConfig()) {
    config.models = {{"model", folder}};
    config.max_len = max_len;
    auto server = Server::Start(config, nullptr);
    if (!server.ok()) return server.status();
    server_ = std::move(*server);
    stub_ = v1::Encoder::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->grpc_port()),
                            grpc::InsecureChannelCredentials()));
    return server_->Load(&Model::Load, kNoMemoryLimit);
  }
  grpc::Status Embed(const v1::EmbedRequest& request) {
    grpc::ClientContext context;
    response_.Clear();
    return stub_->Embed(&context, request, &response_);
  }
  std::vector<float> Vector(const std::string& text) {
    grpc::ClientContext context;
    v1::EmbedRequest request = TextRequest({text});
    request.mutable_options()->set_packed(true);
    v1::EmbedResponse response;
    EXPECT_TRUE(stub_->Embed(&context, request, &response).ok());
    if (response.embeddings_size() != 1) return {};
    const std::string& packed = response.embeddings(0).packed();
    std::vector<float> values(packed.size() / sizeof(float));
    std::memcpy(values.data(), packed.data(), packed.size());
    return values;
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::Encoder::Stub> stub_;
  v1::EmbedResponse response_;
};

TEST_F(ModelTest, TakesExactly256TokensAndRefuses257) {
  ASSERT_TRUE(Start(0).ok());
  ASSERT_TRUE(Embed(TextRequest({Hellos(256)})).ok());
  EXPECT_EQ(response_.embeddings(0).token_count(), 256u);
  EXPECT_EQ(response_.embeddings(0).floats().values_size(), 384);
  const RpcError error = ReadError(Embed(TextRequest({"fine", Hellos(257)})));
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "INPUT_TOO_LONG");
  EXPECT_EQ(error.metadata.at("input_index"), "1");
  EXPECT_EQ(error.metadata.at("token_count"), "257");
  EXPECT_EQ(error.metadata.at("max_tokens"), "256");
}

TEST_F(ModelTest, Takes512AndRefuses513UnderTheFlag) {
  ASSERT_TRUE(Start(512).ok());
  EXPECT_TRUE(Embed(TextRequest({Hellos(512)})).ok());
  const RpcError error = ReadError(Embed(TextRequest({Hellos(513)})));
  EXPECT_EQ(error.reason, "INPUT_TOO_LONG");
  EXPECT_EQ(error.metadata.at("token_count"), "513");
  EXPECT_EQ(error.metadata.at("max_tokens"), "512");
}

TEST_F(ModelTest, EqualTextsGetTheBitsThatOneAloneGets) {
  ASSERT_TRUE(Start(0).ok());
  const std::vector<float> alone = Vector("text");
  ASSERT_TRUE(Embed(TextRequest({"text", "other", "text"})).ok());
  const auto& values = response_.embeddings(2).floats().values();
  EXPECT_THAT(values, ::testing::ElementsAreArray(alone));
}

TEST_F(ModelTest, RefusesFourAndEightTimesItsLengthWhole) {
  ASSERT_TRUE(Start(0).ok());
  for (const int tokens : {1024, 2048}) {
    const RpcError error = ReadError(Embed(TextRequest({Hellos(tokens)})));
    EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(error.reason, "INPUT_TOO_LONG");
    EXPECT_EQ(error.metadata.at("token_count"), absl::StrCat(tokens));
    EXPECT_EQ(error.metadata.at("max_tokens"), "256");
    EXPECT_EQ(response_.embeddings_size(), 0);
  }
  EXPECT_TRUE(Embed(TextRequest({Hellos(256)})).ok());
}

TEST_F(ModelTest, TheTableSumHasTheTablesColumnsAlsoWithoutRows) {
  const TempFolder folder;
  WriteCheckpoint(CheckpointSpecOf("albert"), folder.path());
  ASSERT_TRUE(Start(0, folder.path()).ok());
  v1::EncodeRequest request;
  v1::TokenIds* tokens = request.add_inputs()->mutable_tokens();
  tokens->add_ids(2);  // [CLS] and [SEP] of the folder's vocabulary
  tokens->add_ids(3);
  request.set_layer(0);
  const auto shape = [&](bool before_norm, v1::TokenSpan span) {
    request.set_before_norm(before_norm);
    request.set_span(span);
    grpc::ClientContext context;
    v1::EncodeResponse response;
    const grpc::Status status = stub_->Encode(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const v1::TokenStates& states = response.states(0);
    EXPECT_EQ(states.packed().size(), 4u * states.rows() * states.columns());
    return std::pair<uint32_t, uint32_t>(states.rows(), states.columns());
  };
  using Shape = std::pair<uint32_t, uint32_t>;
  constexpr v1::TokenSpan kNone = v1::TOKEN_SPAN_WITHOUT_SPECIAL_TOKENS;
  EXPECT_EQ(shape(true, v1::TOKEN_SPAN_ALL), Shape(2, 24));
  EXPECT_EQ(shape(true, kNone), Shape(0, 24));
  EXPECT_EQ(shape(false, v1::TOKEN_SPAN_ALL), Shape(2, 64));
  EXPECT_EQ(shape(false, kNone), Shape(0, 64));
}

TEST_F(ModelTest, MaxLenBeyondTheTableIsRefusedAtStart) {
  const absl::Status status = Start(513);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("513"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("512"));
}

TEST_F(ModelTest, Fp8ProductsAreRefusedAtStartWhereTheyAreNotComputed) {
  ServerConfig config = TestConfig();
  config.device = "cpu";
  config.products = "fp8";
  const absl::Status status = Start(0, ModelFolder(), config);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("products \"fp8\" are not supported on a CPU"));
}

TEST_F(ModelTest, AHundredPositionsTakeFiftyAndAHundredButNotOneMore) {
  const TempFolder folder;
  WriteCheckpoint(CheckpointSpecOf("positions100"), folder.path());
  ASSERT_TRUE(Start(0, folder.path()).ok());
  const auto embed = [this](int tokens) {
    v1::EmbedRequest request;
    request.add_inputs()->mutable_tokens()->mutable_ids()->Resize(tokens, 7);
    return Embed(request);
  };
  EXPECT_TRUE(embed(50).ok());
  EXPECT_TRUE(embed(100).ok());
  const RpcError error = ReadError(embed(101));
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "INPUT_TOO_LONG");
  EXPECT_EQ(error.metadata.at("token_count"), "101");
  EXPECT_EQ(error.metadata.at("max_tokens"), "100");
}

TEST_F(ModelTest, ABusyServerGivesTheBitsOfAnIdleOne) {
  ASSERT_TRUE(Start(0).ok());
  const std::vector<std::string> texts = {
      "a neighbor", "Die Katze sitzt auf der Matte.", Hellos(200),
      "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E"};
  std::vector<std::vector<float>> alone;
  for (const std::string& text : texts) alone.push_back(Vector(text));

  std::atomic<bool> stop{false};
  std::thread refused([&] {
    while (!stop) {
      grpc::ClientContext context;
      v1::EmbedResponse response;
      EXPECT_FALSE(stub_
                       ->Embed(&context, TextRequest({"ok", Hellos(257), "ok"}),
                               &response)
                       .ok());
    }
  });
  std::thread company([&] {
    for (int i = 0; !stop; ++i) {
      Vector(absl::StrCat("company number ", i, Hellos(3 + i % 100)));
    }
  });
  for (int round = 0; round < 10; ++round) {
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(Vector(texts[i]), alone[i]) << texts[i];
    }
  }
  stop = true;
  refused.join();
  company.join();
}

TEST_F(ModelTest, SimilarSentencesLieCloserThanOthers) {
  ASSERT_TRUE(Start(0).ok());
  const std::vector<float> a = Vector("A man is eating food.");
  const std::vector<float> b = Vector("A man eats something.");
  const std::vector<float> c = Vector("The stock market fell sharply today.");
  const auto dot = [](const std::vector<float>& x,
                      const std::vector<float>& y) {
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += double{x[i]} * y[i];
    return sum;
  };
  EXPECT_NEAR(dot(a, a), 1, 1e-5);
  EXPECT_GT(dot(a, b), 0.6);
  EXPECT_LT(dot(a, c), 0.3);
}

TEST_F(ModelTest, WrongIdsNameTheirTable) {
  ASSERT_TRUE(Start(0).ok());
  const auto refused = [&](uint32_t id, uint32_t segment, uint32_t position) {
    v1::EmbedRequest request;
    v1::TokenIds* tokens = request.add_inputs()->mutable_tokens();
    tokens->add_ids(id);
    tokens->add_segment_ids(segment);
    tokens->add_position_ids(position);
    const grpc::Status status = Embed(request);
    return status.ok() ? "OK" : ReadError(status).reason;
  };
  EXPECT_EQ(refused(30521, 1, 511), "OK");
  EXPECT_EQ(refused(30522, 0, 0), "TOKEN_ID_OUT_OF_RANGE");
  EXPECT_EQ(refused(0, 2, 0), "SEGMENT_ID_OUT_OF_RANGE");
  EXPECT_EQ(refused(0, 0, 512), "POSITION_ID_OUT_OF_RANGE");
}

TEST_F(ModelTest, IdsGiveTheBitsOfTheirText) {
  ASSERT_TRUE(Start(0).ok());
  grpc::ClientContext context;
  v1::TokenizeRequest tokenize;
  tokenize.add_inputs()->set_text("The same text, twice.");
  v1::TokenizeResponse tokenized;
  ASSERT_TRUE(stub_->Tokenize(&context, tokenize, &tokenized).ok());
  v1::EmbedRequest request = TextRequest({"The same text, twice."});
  *request.add_inputs()->mutable_tokens()->mutable_ids() =
      tokenized.inputs(0).ids();
  ASSERT_TRUE(Embed(request).ok());
  EXPECT_EQ(response_.embeddings(0).SerializeAsString(),
            response_.embeddings(1).SerializeAsString());
}

TEST_F(ModelTest, ItsPositionTableLooksTrained) {
  ASSERT_TRUE(Start(0).ok());
  grpc::ClientContext context;
  v1::InspectPositionsRequest request;
  v1::InspectPositionsResponse response;
  ASSERT_TRUE(stub_->InspectPositions(&context, request, &response).ok());
  EXPECT_EQ(response.verdict(), v1::POSITION_VERDICT_TRAINED);
  EXPECT_EQ(response.row_count(), 512u);
  EXPECT_NEAR(response.profile(0).mean_cosine(), 0.8510, 1e-4);
  EXPECT_NEAR(response.verdict_cosine(), 0.8303, 1e-4);
  EXPECT_NEAR(response.threshold(), 0.0135, 1e-4);
  // No rows are as alike as neighbors; far ones are not alike at all.
  for (int i = 1; i < response.profile_size(); ++i) {
    EXPECT_LT(response.profile(i).mean_cosine(),
              response.profile(0).mean_cosine());
    EXPECT_LT(response.profile(i).mean_centered_cosine(),
              response.verdict_cosine());
  }
  EXPECT_NEAR(response.profile(8).mean_cosine(), -0.0308, 1e-4);
}

TEST_F(ModelTest, WindowsAreTheAverageOfSingleCallsAndTheSameInAnyBatch) {
  ASSERT_TRUE(Start(0).ok());
  constexpr int kOverlap = 32, kRoom = 254;
  std::string text;
  for (int i = 0; i < 300; ++i) absl::StrAppend(&text, "number ", i * i, " ");
  v1::TokenizeRequest tokenize;
  tokenize.add_inputs()->set_text(text);
  v1::TokenizeResponse tokenized;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->Tokenize(&context, tokenize, &tokenized).ok());
  const auto& ids = tokenized.inputs(0).ids();
  v1::EmbedRequest single;
  single.mutable_options()->set_normalize(false);
  const int tokens = ids.size() - 2;
  for (int begin = 0; begin + kOverlap < tokens; begin += kRoom - kOverlap) {
    auto* window = single.add_inputs()->mutable_tokens()->mutable_ids();
    window->Add(ids[0]);
    for (int i = begin; i < std::min(begin + kRoom, tokens); ++i) {
      window->Add(ids[i + 1]);
    }
    window->Add(ids[ids.size() - 1]);
  }
  ASSERT_GT(single.inputs_size(), 3);
  ASSERT_TRUE(Embed(single).ok());
  std::vector<double> sums(384, 0.0);
  double squares = 0;
  for (int k = 0; k < single.inputs_size(); ++k) {
    for (int h = 0; h < 384; ++h) {
      sums[h] += (single.inputs(k).tokens().ids_size() - 2) *
                 double{response_.embeddings(k).floats().values(h)};
    }
  }
  for (const double sum : sums) squares += sum * sum;

  v1::EmbedRequest request = TextRequest({text});
  request.mutable_options()->mutable_windows()->set_overlap(kOverlap);
  ASSERT_TRUE(Embed(request).ok());
  const v1::Embedding alone = response_.embeddings(0);
  EXPECT_EQ(static_cast<int>(alone.windows()), single.inputs_size());
  for (int h = 0; h < 384; ++h) {
    EXPECT_NEAR(alone.floats().values(h), sums[h] / std::sqrt(squares), 1e-7);
  }
  request.mutable_inputs(0)->set_text("short");
  request.add_inputs()->set_text(text);
  request.add_inputs()->set_text(Hellos(100));
  ASSERT_TRUE(Embed(request).ok());
  EXPECT_EQ(response_.embeddings(1).SerializeAsString(),
            alone.SerializeAsString());
}

TEST_F(ModelTest, ADenseModuleSetsTheWidthOfVectors) {
  const TempFolder folder;
  WriteCheckpoint(CheckpointSpecOf("positions100"), folder.path());
  folder.Write("modules.json", R"([
    {"path": "", "type": "sentence_transformers.models.Transformer"},
    {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])");
  folder.Write("2_Dense/config.json",
               R"({"in_features": 64, "out_features": 3})");
  folder.Write("2_Dense/model.safetensors",
               SafetensorsBytes({FloatTensor("linear.weight", {3, 64},
                                             std::vector<float>(192, 0.01f)),
                                 FloatTensor("linear.bias", {3}, {0, 1, 2})}));
  ASSERT_TRUE(Start(0, folder.path()).ok());
  grpc::ClientContext context;
  v1::Model model;
  ASSERT_TRUE(stub_->GetModel(&context, {}, &model).ok());
  EXPECT_EQ(model.dimensions(), 3u);
  EXPECT_EQ(model.hidden_size(), 64u);
  EXPECT_EQ(model.head_parameters(), 195u);
  EXPECT_FALSE(model.normalize());
  v1::EmbedRequest request = TextRequest({"a b c"});
  ASSERT_TRUE(Embed(request).ok());
  ASSERT_EQ(response_.embeddings(0).floats().values_size(), 3);
  // Equal rows of weights: what differs is the bias, before Tanh.
  const auto& values = response_.embeddings(0).floats().values();
  EXPECT_NEAR(std::atanh(values[1]) - std::atanh(values[0]), 1, 1e-4);
  request.mutable_options()->set_dimensions(2);
  ASSERT_TRUE(Embed(request).ok());
  EXPECT_EQ(response_.embeddings(0).floats().values_size(), 2);
  request.mutable_options()->set_dimensions(4);
  const RpcError error = ReadError(Embed(request));
  EXPECT_EQ(error.reason, "INVALID_OPTION");
  EXPECT_EQ(error.metadata.at("limit"), "3");
}

TEST_F(ModelTest, DescribesItselfWithTheFiguresOfItsTables) {
  ASSERT_TRUE(Start(0).ok());
  grpc::ClientContext context;
  v1::Model model;
  ASSERT_TRUE(stub_->GetModel(&context, {}, &model).ok());
  EXPECT_EQ(model.max_len(), 256u);
  EXPECT_EQ(model.max_len_source(), v1::MAX_LEN_SOURCE_SENTENCE_TRANSFORMERS);
  EXPECT_EQ(model.token_table().parameters(), 30522u * 384);
  EXPECT_EQ(model.position_table().parameters(), 512u * 384);
  EXPECT_EQ(model.segment_table().parameters(), 2u * 384);
  EXPECT_EQ(model.layer_parameters_size(), 6);
  EXPECT_EQ(model.total_parameters(), 22'565'376u);
  EXPECT_EQ(model.dimensions(), 384u);
  EXPECT_EQ(model.position_scheme(), "learned");
  EXPECT_EQ(model.vocab_size(), 30522u);
  EXPECT_EQ(model.weights_sha256(),
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db");
}

}  // namespace
}  // namespace encoderd
