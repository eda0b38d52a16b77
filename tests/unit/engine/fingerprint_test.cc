// The fingerprint of each setting by itself; model_test.cc has that of files.
#include "engine/fingerprint.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "engine/checkpoint/positions.h"
#include "engine/tokenizer/pipeline_tokenizer.h"
#include "tests/support/fake_tokenizer.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

// With one of everything that a setting can be of.
ModelInfo Info() {
  ModelInfo info;
  info.weights_sha256 = "00ff";
  info.dtype = "fp32";
  info.limits.max_len = 64;
  ModelConfig& config = info.config;
  config.model_type = "bert";
  config.hidden_size = 8;
  config.num_attention_heads = 2;
  config.layers = {{.reach = {4, 5}, .rotation = 0}};
  config.rotations = {{.theta = 1e4, .dims = 4}};
  config.head = {{HeadModule::Kind::kDense, "2_Dense", 8, 6}};
  config.prompts = {{"query", "q: "}};
  return info;
}

std::string FingerprintOf(const ModelInfo& info) {
  const FakeTokenizer tokenizer;
  return Fingerprint(info, tokenizer).value();
}

struct Setting {
  const char* name;
  void (*change)(ModelInfo* info);
};

TEST(FingerprintTest, IsOfEverySettingThatChangesAVector) {
  const Setting kSettings[] = {
      {"weights", [](ModelInfo* info) { info->weights_sha256 = "00fe"; }},
      {"dtype", [](ModelInfo* info) { info->dtype = "bf16"; }},
      {"max_len", [](ModelInfo* info) { info->limits.max_len = 63; }},
      {"architecture", [](ModelInfo* info) { info->config.model_type = "b"; }},
      {"activation",
       [](ModelInfo* info) { info->config.hidden_act = Activation::kRelu; }},
      {"epsilon", [](ModelInfo* info) { info->config.layer_norm_eps = 1e-5f; }},
      {"position offset",
       [](ModelInfo* info) { info->config.position_offset = 2; }},
      {"position scheme",
       [](ModelInfo* info) {
         info->config.position_scheme = &SinusoidalPositions();
       }},
      {"heads", [](ModelInfo* info) { info->config.num_attention_heads = 4; }},
      {"pooling",
       [](ModelInfo* info) { info->config.pooling = Pooling::kMax; }},
      {"normalize", [](ModelInfo* info) { info->config.normalize = true; }},
      {"dimensions", [](ModelInfo* info) { info->config.head[0].out = 4; }},
      {"segments", [](ModelInfo* info) { info->config.type_vocab_size = 2; }},
      {"a layer's rotation",
       [](ModelInfo* info) { info->config.layers[0].rotation = -1; }},
      {"a layer's keys before",
       [](ModelInfo* info) { info->config.layers[0].reach.left = 3; }},
      {"a layer's keys after",
       [](ModelInfo* info) { info->config.layers[0].reach.right = 3; }},
      {"layers",
       [](ModelInfo* info) {
         info->config.layers.push_back(info->config.layers[0]);
       }},
      {"theta", [](ModelInfo* info) { info->config.rotations[0].theta = 5; }},
      {"rotated dims",
       [](ModelInfo* info) { info->config.rotations[0].dims = 2; }},
      {"a head module's kind",
       [](ModelInfo* info) {
         info->config.head[0].kind = HeadModule::Kind::kLayerNorm;
       }},
      {"tanh", [](ModelInfo* info) { info->config.head[0].tanh = true; }},
      {"head modules",
       [](ModelInfo* info) {
         info->config.head.push_back(
             {HeadModule::Kind::kNormalize, "3_Normalize", 6, 6});
       }},
      {"a prompt's name",
       [](ModelInfo* info) {
         info->config.prompts = {{"title", "q: "}};
       }},
      {"a prompt's text",
       [](ModelInfo* info) {
         info->config.prompts = {{"query", "Q: "}};
       }},
      {"another prompt",
       [](ModelInfo* info) { info->config.prompts["title"] = "t: "; }},
      {"the default prompt",
       [](ModelInfo* info) { info->config.default_prompt_name = "query"; }},
  };
  std::map<std::string, std::string> names = {{FingerprintOf(Info()), "none"}};
  for (const Setting& setting : kSettings) {
    ModelInfo info = Info();
    setting.change(&info);
    const auto [other, added] =
        names.emplace(FingerprintOf(info), setting.name);
    EXPECT_TRUE(added) << setting.name << " as " << other->second;
  }
}

TEST(FingerprintTest, IsNotOfWhatChangesNoVector) {
  const Setting kSettings[] = {
      {"device", [](ModelInfo* info) { info->device = "another"; }},
      {"sessions", [](ModelInfo* info) { info->preferred_sessions = 7; }},
      {"notes", [](ModelInfo* info) { info->notes = {"a"}; }},
      {"warnings", [](ModelInfo* info) { info->config.warnings = {"a"}; }},
      {"folder", [](ModelInfo* info) { info->config.head[0].folder = "x"; }},
  };
  for (const Setting& setting : kSettings) {
    ModelInfo info = Info();
    setting.change(&info);
    EXPECT_EQ(FingerprintOf(info), FingerprintOf(Info())) << setting.name;
  }
}

TEST(FingerprintTest, ATokenizerThatRejectsAShortTextIsAFaultOfItsFiles) {
  TokenizerSpec spec;
  spec.vocabulary = {"a"};
  spec.normalizer = {PrependStep{std::string(2 << 20, 'a')}};
  spec.model = BytePairOptions();
  const auto tokenizer = PipelineTokenizer::Create(std::move(spec));
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Fingerprint(Info(), **tokenizer),
              IsError(absl::StatusCode::kDataLoss,
                      "the tokenizer rejects a short text: the text has"));
}

}  // namespace
}  // namespace encoderd
