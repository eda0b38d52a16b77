#include "engine/checkpoint/model_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/support/status_matchers.h"
#include "tests/unit/engine/checkpoint/model_config_fixture.h"

namespace encoderd {
namespace {

using Json = nlohmann::json;
using testing::Contains;
using testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

TEST_F(ModelConfigTest, ReadsTheSizesOfABertModel) {
  const auto config = Load();
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->model_type, "bert");
  EXPECT_EQ(config->num_hidden_layers, 6);
  EXPECT_EQ(config->hidden_size, 384);
  EXPECT_EQ(config->num_attention_heads, 12);
  EXPECT_EQ(config->head_size(), 32);
  EXPECT_EQ(config->intermediate_size, 1536);
  EXPECT_EQ(config->vocab_size, 30522);
  EXPECT_EQ(config->max_position_embeddings, 512);
  EXPECT_EQ(config->type_vocab_size, 2);
  EXPECT_EQ(config->position_offset, 0);
  EXPECT_EQ(config->layer_norm_eps, 1e-12f);
  EXPECT_EQ(config->hidden_act, Activation::kGeluErf);
  EXPECT_EQ(config->pooling, Pooling::kMean);
  EXPECT_TRUE(config->normalize);
}

TEST_F(ModelConfigTest, NamesAFolderOrFileThatIsNotThere) {
  EXPECT_THAT(LoadModelConfig(folder_.Path("none"), 0),
              IsError(kNotFound, "none"));
  config_ = nullptr;
  EXPECT_THAT(Load(), IsError(kNotFound, "config.json"));
}

TEST_F(ModelConfigTest, NamesTheFieldTheValueAndTheLimit) {
  config_["hidden_size"] = -3;
  EXPECT_THAT(Load(),
              IsError(kDataLoss,
                      "config.json: hidden_size is -3; expected a whole "
                      "number from 1 to 262144"));
  config_["hidden_size"] = "384";
  EXPECT_THAT(Load(), IsError(kDataLoss, "hidden_size is '384'"));
  config_.erase("hidden_size");
  EXPECT_THAT(Load(), IsError(kDataLoss, "hidden_size is missing"));
}

TEST_F(ModelConfigTest, RefusesHeadsThatDoNotDivideTheHiddenSize) {
  config_["num_attention_heads"] = 7;
  EXPECT_THAT(Load(), IsError(kDataLoss,
                              "num_attention_heads is 7; expected a "
                              "divisor of hidden_size 384"));
}

TEST_F(ModelConfigTest, RefusesOtherArchitecturesByName) {
  config_["model_type"] = "deberta-v2";
  EXPECT_THAT(Load(), IsError(kUnimplemented,
                              "model_type 'deberta-v2' is not "
                              "supported; supported: "));
  config_.erase("model_type");
  EXPECT_THAT(Load(), IsError(kDataLoss, "model_type is missing"));
}

TEST_F(ModelConfigTest, RefusesOtherPositionSchemesByName) {
  for (const char* scheme : {"relative_key", "relative_key_query", "alibi"}) {
    config_["position_embedding_type"] = scheme;
    EXPECT_THAT(Load(), IsError(kUnimplemented, scheme));
  }
  config_["position_embedding_type"] = "absolute";
  EXPECT_EQ(Load().value().position_scheme, &LearnedPositions());
}

TEST_F(ModelConfigTest, ReadsASinusoidalSchemeAndMakesRowsForMaxLen) {
  config_["position_embedding_type"] = "sinusoidal";
  folder_.Write("sentence_bert_config.json", R"({"max_seq_length":1024})");
  const auto config = Load();
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->position_scheme, &SinusoidalPositions());
  EXPECT_EQ(config->max_len, 1024);
  EXPECT_EQ(config->max_len_source, MaxLenSource::kSentenceTransformers);
  EXPECT_EQ(config->max_position_embeddings, 1024);
  EXPECT_EQ(Load(3000).value().max_position_embeddings, 3000);
}

TEST_F(ModelConfigTest, ReadsActivationsAndRefusesOthersByName) {
  const std::pair<const char*, Activation> known[] = {
      {"gelu", Activation::kGeluErf},
      {"gelu_new", Activation::kGeluTanh},
      {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"relu", Activation::kRelu}};
  for (const auto& [name, activation] : known) {
    config_["hidden_act"] = name;
    EXPECT_EQ(Load().value().hidden_act, activation) << name;
  }
  config_["hidden_act"] = "silu";
  EXPECT_THAT(Load(), IsError(kUnimplemented, "hidden_act 'silu'"));
  config_["hidden_act"] = nullptr;
  EXPECT_THAT(Load(), IsError(kUnimplemented,
                              "config.json: hidden_act null is not supported; "
                              "supported: gelu, "));
  config_.erase("hidden_act");
  EXPECT_EQ(Load().value().hidden_act, Activation::kGeluErf);
}

TEST_F(ModelConfigTest, RefusesWhatIsNoPlainEncoder) {
  for (const char* key :
       {"is_decoder", "add_cross_attention", "is_encoder_decoder"}) {
    Json plain = config_;
    config_[key] = true;
    EXPECT_THAT(Load(), IsError(kUnimplemented, key));
    config_ = plain;
  }
  config_["auto_map"] = {{"AutoModel", "modeling.Own"}};
  EXPECT_THAT(Load(), IsError(kUnimplemented, "auto_map"));
  config_["auto_map"] = Json::object();
  EXPECT_THAT(Load(), IsOk());
  config_["quantization_config"] = {{"bits", 4}};
  EXPECT_THAT(Load(), IsError(kUnimplemented, "quantization_config"));
}

// max_len: the smallest of position table, max_seq_length, model_max_length.

TEST_F(ModelConfigTest, MaxLenIsThePositionTableWithoutOtherLimits) {
  const auto config = Load();
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->max_len, 512);
  EXPECT_EQ(config->max_len_source, MaxLenSource::kPositionTable);
}

TEST_F(ModelConfigTest, MaxLenIsTheSmallestLimitAndNamesIt) {
  folder_.Write("sentence_bert_config.json", R"({"max_seq_length":256})");
  folder_.Write("tokenizer_config.json", R"({"model_max_length":512})");
  auto config = Load();
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->max_len, 256);
  EXPECT_EQ(config->max_len_source, MaxLenSource::kSentenceTransformers);
  EXPECT_STREQ(MaxLenSourceName(config->max_len_source),
               "sentence_transformers");

  folder_.Write("tokenizer_config.json", R"({"model_max_length":128})");
  config = Load();
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->max_len, 128);
  EXPECT_EQ(config->max_len_source, MaxLenSource::kTokenizer);
}

TEST_F(ModelConfigTest, ATokenizerWithoutALimitSaysNothing) {
  for (const char* limit :
       {"1e30", "1000000000000000019884624838656", "null", "2147483648"}) {
    folder_.Write("tokenizer_config.json",
                  std::string(R"({"model_max_length":)") + limit + "}");
    const auto config = Load();
    ASSERT_THAT(config, IsOk()) << limit;
    EXPECT_EQ(config->max_len, 512) << limit;
    EXPECT_EQ(config->max_len_source, MaxLenSource::kPositionTable) << limit;
    EXPECT_TRUE(config->notes.empty()) << limit;
  }
  folder_.Write("tokenizer_config.json", R"({"model_max_length":0})");
  EXPECT_THAT(Load(), IsError(kDataLoss, "model_max_length is 0"));
}

// sentence_bert_config.json's own arguments of the tokenizer go first.
TEST_F(ModelConfigTest, AnArgumentOfTheTokenizerReplacesBothOtherLengths) {
  folder_.Write("tokenizer_config.json", R"({"model_max_length":128})");
  for (const auto& [length, max_len] :
       {std::pair<const char*, int>{"30", 30}, {"300", 300}, {"null", 512}}) {
    folder_.Write("sentence_bert_config.json",
                  std::string(R"({"max_seq_length":5,"tokenizer_args":)") +
                      R"({"model_max_length":)" + length + "}}");
    const auto config = Load();
    ASSERT_THAT(config, IsOk());
    EXPECT_EQ(config->max_len, max_len) << length;
  }
}

TEST_F(ModelConfigTest, NamesTheSettingThatBecameMaxLen) {
  modules_[0]["path"] = "0_Transformer";
  const auto setting = [&](int32_t flag) {
    folder_.Write("0_Transformer/config.json", config_.dump());
    return Load(flag).value().max_len_setting;
  };
  EXPECT_EQ(setting(0), "max_position_embeddings in 0_Transformer/config.json");
  EXPECT_EQ(setting(8), "");
  folder_.Write("0_Transformer/tokenizer_config.json",
                R"({"model_max_length":100})");
  EXPECT_EQ(setting(0),
            "model_max_length in 0_Transformer/tokenizer_config.json");
  const std::string old = "0_Transformer/sentence_roberta_config.json";
  folder_.Write(old, R"({"max_seq_length":50})");
  EXPECT_EQ(setting(0), "max_seq_length in " + old);
  folder_.Write(old, R"({"tokenizer_args":{"model_max_length":50}})");
  EXPECT_EQ(setting(0), "model_max_length in " + old);
}

TEST_F(ModelConfigTest, ATokenizerLimitOverTheTableIsIgnoredAndNoted) {
  folder_.Write("tokenizer_config.json", R"({"model_max_length":1024})");
  const auto config = Load();
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->max_len, 512);
  EXPECT_THAT(config->notes, Contains(HasSubstr("model_max_length 1024")));
}

TEST_F(ModelConfigTest, IgnoresAMaxSeqLengthOverTheTable) {
  folder_.Write("sentence_bert_config.json", R"({"max_seq_length":513})");
  const auto config = Load();
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->max_len, 512);
  EXPECT_THAT(config->notes, Contains(HasSubstr("max_seq_length 513")));
}

TEST_F(ModelConfigTest, TheFlagRaisesMaxLenUpToTheTable) {
  folder_.Write("sentence_bert_config.json", R"({"max_seq_length":256})");
  auto config = Load(512);
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->max_len, 512);
  EXPECT_EQ(config->max_len_source, MaxLenSource::kFlag);
  EXPECT_THAT(config->notes, Contains(HasSubstr("exceeds the model's limit")));
  config = Load(16);
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->max_len, 16);
  EXPECT_TRUE(config->notes.empty());
}

TEST_F(ModelConfigTest, TheFlagIsRefusedPastTheTable) {
  EXPECT_THAT(Load(513), IsError(kInvalidArgument, "max_len is 513"));
  EXPECT_THAT(Load(-1), IsError(kInvalidArgument, "max_len is -1"));
}

}  // namespace
}  // namespace encoderd
