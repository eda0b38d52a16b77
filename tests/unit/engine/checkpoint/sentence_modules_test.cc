// What sentence-transformers stores with a transformer, read or refused.
#include "engine/checkpoint/sentence_modules.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/io/json.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/engine/checkpoint/model_config_fixture.h"

namespace encoderd {
namespace {

using Json = nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

using SentenceModulesTest = ModelConfigTest;

TEST_F(SentenceModulesTest, ReadsTheBooleansOfOlderPoolingFiles) {
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

TEST_F(SentenceModulesTest, ReadsTheNameOfNewerPoolingFiles) {
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

TEST_F(SentenceModulesTest, RefusesSeveralPoolingModesByName) {
  pooling_["pooling_mode_max_tokens"] = true;
  EXPECT_THAT(Load(), IsError(kUnimplemented, "max + mean combined"));
  pooling_ = {{"pooling_mode", {"cls", "lasttoken"}}};
  EXPECT_THAT(Load(), IsError(kUnimplemented, "cls + lasttoken combined"));
}

TEST_F(SentenceModulesTest, RefusesUnknownPoolingModesByName) {
  pooling_ = {{"pooling_mode", "splade"}};
  EXPECT_THAT(Load(), IsError(kUnimplemented, "'splade'"));
  pooling_ = {{"pooling_mode_new_thing", true}};
  EXPECT_THAT(Load(), IsError(kUnimplemented, "'pooling_mode_new_thing'"));
  pooling_["pooling_mode"] = "cls";
  EXPECT_THAT(Load(), IsError(kUnimplemented, "'pooling_mode_new_thing'"));
}

// sentence-transformers fails at each of them.
TEST_F(SentenceModulesTest, GuessesNoPoolingMode) {
  for (const Json& none : {Json(), Json::array()}) {
    pooling_["pooling_mode"] = none;
    EXPECT_THAT(
        Load(),
        IsError(kDataLoss, absl::StrCat("1_Pooling/config.json: "
                                        "pooling_mode is ",
                                        ShowJson(none), "; expected a name")));
  }
  pooling_ = Json::object();
  EXPECT_THAT(Load(), IsError(kDataLoss, "pooling_mode is missing"));
  // Of which the mode is the default one.
  for (const char* key : {"word_embedding_dimension", "embedding_dimension"}) {
    pooling_ = {{key, 384}};
    EXPECT_EQ(Load().value().pooling, Pooling::kMean) << key;
  }
}

TEST_F(SentenceModulesTest, RefusesUnknownMembersOfThePoolingByName) {
  pooling_["foo"] = 1;
  EXPECT_THAT(Load(), IsError(kUnimplemented,
                              "1_Pooling/config.json: foo 1 is not supported"));
}

TEST_F(SentenceModulesTest, RefusesAPoolingOfAnotherWidth) {
  pooling_["word_embedding_dimension"] = 768;
  EXPECT_THAT(Load(), IsError(kDataLoss,
                              "word_embedding_dimension is 768; "
                              "the hidden_size is 384"));
}

TEST_F(SentenceModulesTest, RefusesOtherModulesByName) {
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

// Of which sentence-transformers would compute the last one only.
TEST_F(SentenceModulesTest, RefusesTwoModulesOfOneName) {
  modules_ = Modules({"Transformer", "Pooling", "Normalize", "Normalize"});
  EXPECT_THAT(Load(), IsOk());
  modules_[3]["name"] = "2";
  EXPECT_THAT(Load(), IsError(kDataLoss,
                              "modules.json, module 3: name is '2'; expected "
                              "one that no other module has"));
  modules_[3]["name"] = 3;
  EXPECT_THAT(Load(), IsError(kDataLoss, "name is 3; expected a string"));
}

TEST_F(SentenceModulesTest, ReadsTheClassNamesOfNewerVersions) {
  modules_[0]["type"] =
      "sentence_transformers.base.modules.transformer.Transformer";
  modules_[1]["type"] =
      "sentence_transformers.sentence_transformer.modules.pooling.Pooling";
  EXPECT_THAT(Load(), IsOk());
}

TEST_F(SentenceModulesTest, ReadsATransformerInASubfolder) {
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

TEST_F(SentenceModulesTest, SaysThatAMissingFileIsOfTheModules) {
  for (const char* type : {"Pooling", "Dense"}) {
    modules_ = {
        {{"path", ""},
         {"type",
          "sentence_transformers.models."
          "Transformer"}},
        {{"path", "1_Pooling"},
         {"type", "sentence_transformers.models.Pooling"}},
        {{"path", "2_Dense"}, {"type", "sentence_transformers.models.Dense"}}};
    std::filesystem::remove_all(
        folder_.Path(*type == 'P' ? "1_Pooling" : "2_Dense"));
    EXPECT_THAT(Load(), IsError(absl::StatusCode::kNotFound,
                                "modules.json names its folder"))
        << type;
  }
}

TEST_F(SentenceModulesTest, SaysWhenTheFileThatLimitsTextsIsNotThere) {
  const auto config = Load();
  ASSERT_THAT(config, IsOk());
  EXPECT_THAT(config->warnings,
              ElementsAre(EndsWith(absl::StrCat(
                  "how long a text may be: max_len is ", config->max_len))));
  folder_.Write("sentence_bert_config.json", R"({"max_seq_length":7})");
  EXPECT_THAT(Load()->warnings, IsEmpty());
}

TEST_F(SentenceModulesTest, RefusesModulesOutsideTheFolder) {
  for (const char* path : {"../other", "/etc"}) {
    modules_[0]["path"] = path;
    EXPECT_THAT(Load(), IsError(kDataLoss, "not a name inside"));
  }
  std::filesystem::create_symlink("/etc", folder_.Path("link"));
  modules_[0]["path"] = "link";
  EXPECT_THAT(Load(), testing::Not(IsOk()));
}

TEST_F(SentenceModulesTest, WithoutModulesTakesTheMeanNotNormalisedAndSaysSo) {
  modules_ = nullptr;
  folder_.Write("config_sentence_transformers.json",
                R"({"prompts":{"q":"q: "},"default_prompt_name":"q"})");
  folder_.Write("sentence_bert_config.json",
                R"({"max_seq_length":7,"do_lower_case":true})");
  const auto config = Load();
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->pooling, Pooling::kMean);
  EXPECT_FALSE(config->normalize);
  EXPECT_FALSE(config->lowercase);
  EXPECT_GT(config->max_len, 7);
  EXPECT_TRUE(config->prompts.empty());
  EXPECT_EQ(config->default_prompt_name, "");
  EXPECT_THAT(config->warnings, ElementsAre(HasSubstr("no modules.json")));
}

TEST_F(SentenceModulesTest, WithoutModulesAHeadIsNamed) {
  modules_ = nullptr;
  for (const auto& [name, warnings] :
       {std::pair<const char*, size_t>{"BertModel", 1},
        {"BertForSequenceClassification", 2},
        {"HF_ColBERT", 2}}) {
    config_["architectures"] = {name};
    const auto config = Load();
    ASSERT_THAT(config, IsOk());
    EXPECT_EQ(config->warnings.size(), warnings) << name;
  }
  EXPECT_THAT(Load()->warnings,
              Contains("config.json names 'HF_ColBERT', whose head is not "
                       "computed: no scores of a reranker or classifier, no "
                       "sparse weights"));
  config_["architectures"] = "BertModel";
  EXPECT_THAT(Load(), IsError(kDataLoss, "expected an array"));
}

TEST_F(SentenceModulesTest, ReadsPromptsAndTheDefaultOne) {
  folder_.Write("config_sentence_transformers.json",
                R"({"prompts":{"query":"query: ","doc":""},)"
                R"("default_prompt_name":"query"})");
  const auto config = Load();
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->prompts.at("query"), "query: ");
  EXPECT_EQ(config->prompts.at("doc"), "");
  EXPECT_EQ(config->default_prompt_name, "query");
}

TEST_F(SentenceModulesTest, RefusesADefaultPromptThatIsNotThereAndALongOne) {
  folder_.Write("config_sentence_transformers.json",
                R"({"prompts":{},"default_prompt_name":"passage"})");
  EXPECT_THAT(Load(), IsError(kDataLoss, "default_prompt_name is 'passage'"));
  folder_.Write("config_sentence_transformers.json",
                R"({"prompts":{"q":")" + std::string(16385, 'x') + "\"}}");
  EXPECT_THAT(Load(), IsError(kDataLoss, "expected at most 16384 bytes"));
}

TEST_F(SentenceModulesTest, ADefaultOfTheNamesThatEveryModelHasIsNone) {
  for (const char* name : {"query", "document"}) {
    folder_.Write("config_sentence_transformers.json",
                  absl::StrCat(R"({"prompts":{"passage":"p: "},)",
                               R"("default_prompt_name":")", name, "\"}"));
    const auto config = Load();
    ASSERT_THAT(config, IsOk()) << name;
    EXPECT_EQ(config->default_prompt_name, "") << name;
    EXPECT_EQ(config->prompts.size(), 1u) << name;
  }
}

// By an empty name, requests choose the default.
TEST_F(SentenceModulesTest, RefusesADefaultPromptWithoutAName) {
  folder_.Write("config_sentence_transformers.json",
                R"({"prompts":{"":"x"},"default_prompt_name":""})");
  EXPECT_THAT(Load(), IsError(kUnimplemented,
                              "config_sentence_transformers.json: "
                              "default_prompt_name '' is not supported; name "
                              "the prompt"));
  for (const char* unused :
       {R"({"prompts":{"":"x"}})", R"({"default_prompt_name":""})",
        R"({"prompts":{"":"x"},"default_prompt_name":null})"}) {
    folder_.Write("config_sentence_transformers.json", unused);
    const auto config = Load();
    ASSERT_THAT(config, IsOk()) << unused;
    EXPECT_EQ(config->default_prompt_name, "") << unused;
  }
}

TEST_F(SentenceModulesTest, RefusesPoolingThatLeavesOutAPrompt) {
  for (const Json& left_out : {Json(false), Json()}) {
    pooling_["include_prompt"] = left_out;
    EXPECT_THAT(Load(),
                IsError(kUnimplemented, "include_prompt false or null"));
  }
}

TEST_F(SentenceModulesTest, RefusesModelsOfOtherKindsByName) {
  folder_.Write("config_sentence_transformers.json",
                R"({"model_type":"SparseEncoder"})");
  EXPECT_THAT(Load(), IsError(kUnimplemented, "'SparseEncoder'"));
}

TEST_F(SentenceModulesTest, ReadsWhetherTextsAreLowercased) {
  EXPECT_FALSE(Load()->lowercase);
  folder_.Write("sentence_bert_config.json", R"({"do_lower_case":true})");
  EXPECT_TRUE(Load()->lowercase);
}

}  // namespace
}  // namespace encoderd
