#include "engine/checkpoint/model_config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

using Json = nlohmann::json;
using testing::Contains;
using testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

class ModelConfigTest : public testing::Test {
 protected:
  absl::StatusOr<ModelConfig> Load(int32_t max_len = 0) {
    if (!config_.is_null()) folder_.Write("config.json", config_.dump());
    if (!modules_.is_null()) folder_.Write("modules.json", modules_.dump());
    if (!pooling_.is_null()) {
      folder_.Write("1_Pooling/config.json", pooling_.dump());
    }
    return LoadModelConfig(folder_.path(), max_len);
  }

  // modules.json of these types, as sentence-transformers numbers them.
  static Json Modules(const std::vector<std::string>& types) {
    Json modules = Json::array();
    for (const std::string& type : types) {
      const std::string number = std::to_string(modules.size());
      modules.push_back({{"idx", modules.size()},
                         {"name", number},
                         {"path", modules.empty() ? "" : number + "_" + type},
                         {"type", "sentence_transformers.models." + type}});
    }
    return modules;
  }

  Json config_ = {{"model_type", "bert"},
                  {"num_hidden_layers", 6},
                  {"hidden_size", 384},
                  {"num_attention_heads", 12},
                  {"intermediate_size", 1536},
                  {"vocab_size", 30522},
                  {"max_position_embeddings", 512},
                  {"type_vocab_size", 2},
                  {"hidden_act", "gelu"},
                  {"layer_norm_eps", 1e-12}};
  Json modules_ = Modules({"Transformer", "Pooling", "Normalize"});
  Json pooling_ = {{"word_embedding_dimension", 384},
                   {"pooling_mode_cls_token", false},
                   {"pooling_mode_mean_tokens", true}};
  const TempFolder folder_;
};

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

TEST_F(ModelConfigTest, ReadsTheBooleansOfOlderPoolingFiles) {
  const std::pair<const char*, Pooling> known[] = {
      {"pooling_mode_cls_token", Pooling::kCls},
      {"pooling_mode_mean_tokens", Pooling::kMean},
      {"pooling_mode_max_tokens", Pooling::kMax},
      {"pooling_mode_mean_sqrt_len_tokens", Pooling::kMeanSqrtLen},
      {"pooling_mode_weightedmean_tokens", Pooling::kWeightedMean},
      {"pooling_mode_lasttoken", Pooling::kLastToken}};
  for (const auto& [key, pooling] : known) {
    pooling_ = {{"pooling_mode_mean_tokens", false}};
    pooling_[key] = true;
    EXPECT_EQ(Load().value().pooling, pooling) << key;
  }
  pooling_ = {{"pooling_mode_mean_tokens", false}};
  EXPECT_EQ(Load().value().pooling, Pooling::kMean);
}

TEST_F(ModelConfigTest, ReadsTheNameOfNewerPoolingFiles) {
  const std::pair<const char*, Pooling> known[] = {
      {"cls", Pooling::kCls},
      {"mean", Pooling::kMean},
      {"max", Pooling::kMax},
      {"mean_sqrt_len_tokens", Pooling::kMeanSqrtLen},
      {"weightedmean", Pooling::kWeightedMean},
      {"lasttoken", Pooling::kLastToken}};
  for (const auto& [name, pooling] : known) {
    pooling_ = {{"pooling_mode", name}};
    EXPECT_EQ(Load().value().pooling, pooling) << name;
    pooling_ = {{"pooling_mode", {name}}};
    EXPECT_EQ(Load().value().pooling, pooling) << name;
  }
}

TEST_F(ModelConfigTest, RefusesSeveralPoolingModesByName) {
  pooling_["pooling_mode_max_tokens"] = true;
  EXPECT_THAT(Load(), IsError(kUnimplemented, "max + mean combined"));
  pooling_ = {{"pooling_mode", {"cls", "lasttoken"}}};
  EXPECT_THAT(Load(), IsError(kUnimplemented, "cls + lasttoken combined"));
}

TEST_F(ModelConfigTest, RefusesUnknownPoolingModesByName) {
  pooling_ = {{"pooling_mode", "splade"}};
  EXPECT_THAT(Load(), IsError(kUnimplemented, "'splade'"));
  pooling_ = {{"pooling_mode_new_thing", true}};
  EXPECT_THAT(Load(), IsError(kUnimplemented, "'pooling_mode_new_thing'"));
}

TEST_F(ModelConfigTest, RefusesAPoolingOfAnotherWidth) {
  pooling_["word_embedding_dimension"] = 768;
  EXPECT_THAT(Load(), IsError(kDataLoss,
                              "word_embedding_dimension is 768; "
                              "the hidden_size is 384"));
}

TEST_F(ModelConfigTest, RefusesOtherModulesByName) {
  modules_ = Modules({"Transformer", "Pooling", "LSTM", "Normalize"});
  EXPECT_THAT(Load(), IsError(kUnimplemented, "'LSTM' at place 2"));
  modules_ = Modules({"Transformer", "Dense", "Pooling"});
  EXPECT_THAT(Load(), IsError(kUnimplemented, "'Dense' at place 1"));
  modules_ = Modules({"WordEmbeddings", "Pooling"});
  EXPECT_THAT(Load(), IsError(kUnimplemented, "'WordEmbeddings' at place 0"));
  modules_ = Modules({"Transformer", "Normalize", "Pooling"});
  EXPECT_THAT(Load(), IsError(kUnimplemented, "'Normalize' at place 1"));
  modules_ = Modules({"Transformer"});
  EXPECT_THAT(Load(), IsError(kUnimplemented, "without a Pooling"));
  modules_ = Json::array({{{"type", "custom.Model"}, {"path", ""}}});
  EXPECT_THAT(Load(), IsError(kUnimplemented, "'custom.Model'"));
  modules_ = Json::object();
  EXPECT_THAT(Load(), IsError(kDataLoss, "not a list of modules"));
  modules_ = Json::array({1});
  EXPECT_THAT(Load(), IsError(kDataLoss, "type is missing"));
}

TEST_F(ModelConfigTest, ReadsTheClassNamesOfNewerVersions) {
  modules_[0]["type"] =
      "sentence_transformers.base.modules.transformer.Transformer";
  modules_[1]["type"] =
      "sentence_transformers.sentence_transformer.modules.pooling.Pooling";
  EXPECT_THAT(Load(), IsOk());
}

TEST_F(ModelConfigTest, ReadsATransformerInASubfolder) {
  modules_[0]["path"] = "0_Transformer";
  folder_.Write("0_Transformer/config.json", config_.dump());
  folder_.Write("0_Transformer/sentence_bert_config.json",
                R"({"max_seq_length":77})");
  config_ = nullptr;
  const auto config = Load();
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->transformer_folder, "0_Transformer");
  EXPECT_EQ(config->max_len, 77);
}

TEST_F(ModelConfigTest, RefusesModulesOutsideTheFolder) {
  for (const char* path : {"../other", "/etc"}) {
    modules_[0]["path"] = path;
    EXPECT_THAT(Load(), IsError(kDataLoss, "not a name inside"));
  }
  std::filesystem::create_symlink("/etc", folder_.Path("link"));
  modules_[0]["path"] = "link";
  EXPECT_THAT(Load(), testing::Not(IsOk()));
}

TEST_F(ModelConfigTest, WithoutModulesTakesTheMeanNotNormalisedAndSaysSo) {
  modules_ = nullptr;
  const auto config = Load();
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->pooling, Pooling::kMean);
  EXPECT_FALSE(config->normalize);
  EXPECT_THAT(config->warnings, Contains(HasSubstr("no modules.json")));
}

TEST_F(ModelConfigTest, ReadsPromptsAndTheDefaultOne) {
  folder_.Write("config_sentence_transformers.json",
                R"({"prompts":{"query":"query: ","doc":""},)"
                R"("default_prompt_name":"query"})");
  const auto config = Load();
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->prompts.at("query"), "query: ");
  EXPECT_EQ(config->prompts.at("doc"), "");
  EXPECT_EQ(config->default_prompt_name, "query");
}

TEST_F(ModelConfigTest, RefusesADefaultPromptThatIsNotThereAndALongOne) {
  folder_.Write("config_sentence_transformers.json",
                R"({"prompts":{},"default_prompt_name":"query"})");
  EXPECT_THAT(Load(), IsError(kDataLoss, "default_prompt_name is 'query'"));
  folder_.Write("config_sentence_transformers.json",
                R"({"prompts":{"q":")" + std::string(16385, 'x') + "\"}}");
  EXPECT_THAT(Load(), IsError(kDataLoss, "expected at most 16384 bytes"));
}

TEST_F(ModelConfigTest, RefusesPoolingThatLeavesOutAPrompt) {
  pooling_["include_prompt"] = false;
  const auto config = Load();
  ASSERT_THAT(config, IsOk());
  EXPECT_THAT(config->notes, Contains(HasSubstr("include_prompt")));
  folder_.Write("config_sentence_transformers.json",
                R"({"prompts":{"query":"query: "}})");
  EXPECT_THAT(Load(), IsError(kUnimplemented, "include_prompt false"));
}

TEST_F(ModelConfigTest, RefusesModelsOfOtherKindsByName) {
  folder_.Write("config_sentence_transformers.json",
                R"({"model_type":"SparseEncoder"})");
  EXPECT_THAT(Load(), IsError(kUnimplemented, "'SparseEncoder'"));
}

TEST_F(ModelConfigTest, ReadsWhetherTextsAreLowercased) {
  EXPECT_FALSE(Load()->lowercase);
  folder_.Write("sentence_bert_config.json", R"({"do_lower_case":true})");
  EXPECT_TRUE(Load()->lowercase);
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
