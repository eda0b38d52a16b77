// GPT-2 and ModernBERT: what their config.json and their checkpoints may say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/positions.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/engine/checkpoint/architecture_fixture.h"

namespace encoderd {
namespace {

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

class PreNormTest : public ArchitectureTest {};

TEST_F(PreNormTest, Gpt2HasNormsFirstACausalMaskAndFourTimesTheWidth) {
  auto config = Config("gpt2", Json::object());  // n_inner is null there
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->intermediate_size, 256);
  EXPECT_EQ(config->layer_norm_eps, 1e-5f);
  EXPECT_EQ(config->hidden_act, Activation::kGeluTanh);
  EXPECT_EQ(config->type_vocab_size, 0);
  EXPECT_EQ(config->max_len, 128);
  EXPECT_TRUE(config->pre_norm);
  EXPECT_FALSE(config->gated);
  const LayerSpec causal = {.reach = {-1, 0}};
  EXPECT_THAT(config->layers, testing::ElementsAre(causal, causal, causal));
  config = Config("gpt2", {{"n_inner", 48}, {"layer_norm_epsilon", nullptr}});
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->intermediate_size, 48);
  EXPECT_EQ(config->layer_norm_eps, 1e-5f);
  EXPECT_EQ(config->hidden_act, Activation::kGeluTanh);
}

// transformers sets local_attention by it.
TEST_F(PreNormTest, RefusesASlidingWindow) {
  EXPECT_THAT(Config("modernbert", {{"sliding_window", 64}}),
              IsError(kUnimplemented, "sliding_window 64"));
}

TEST_F(PreNormTest, RefusesASizeUnderTwoNamesThatDiffer) {
  EXPECT_THAT(Config("distilbert", {{"hidden_size", 12}}),
              IsError(kUnimplemented, "it contradicts dim 64"));
  EXPECT_THAT(Config("gpt2", {{"num_hidden_layers", 99}}),
              IsError(kUnimplemented,
                      "num_hidden_layers 99 is not supported; it contradicts "
                      "n_layer"));
  const auto config = Config("gpt2", Json::object());
  ASSERT_THAT(config, IsOk());
  EXPECT_THAT(
      Config("gpt2", {{"num_hidden_layers", config->num_hidden_layers}}),
      IsOk());
}

TEST_F(PreNormTest, RefusesGpt2sOtherWaysToScaleAttention) {
  for (const char* key :
       {"scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"}) {
    EXPECT_THAT(Config("gpt2", {{key, true}}), IsError(kUnimplemented, key));
    EXPECT_THAT(Config("gpt2", {{key, false}}), IsOk());
  }
  EXPECT_THAT(Config("gpt2", {{"scale_attn_weights", false}}),
              IsError(kUnimplemented, "scale_attn_weights"));
  EXPECT_THAT(Config("gpt2", {{"add_cross_attention", true}}),
              IsError(kUnimplemented, "add_cross_attention"));
}

// The masks that older checkpoints keep in every layer.
TEST_F(PreNormTest, PassesOverGpt2sMasks) {
  const CheckpointSpec spec = CheckpointSpecOf("gpt2");
  WriteCheckpoint(spec, folder_.path());
  std::vector<TensorToWrite> tensors = CheckpointTensors(spec);
  tensors.push_back(FloatTensor("h.2.attn.bias", {1}, {1}));
  tensors.push_back(FloatTensor("h.0.attn.masked_bias", {1}, {1}));
  const auto reader = Open(tensors);
  ASSERT_THAT(reader, IsOk());
  EXPECT_TRUE((*reader)->notes().empty());
}

// Its first layer has no norm before attention.
TEST_F(PreNormTest, ALayerKeepsNoNormOfTheOneBefore) {
  const CheckpointSpec spec = CheckpointSpecOf("modernbert");
  WriteCheckpoint(spec, folder_.path());
  const auto reader = Open(CheckpointTensors(spec));
  ASSERT_THAT(reader, IsOk());
  LayerWeights layer;
  ASSERT_THAT((*reader)->ReadLayer(1, &layer), IsOk());
  EXPECT_FALSE(layer.attention_norm.gain.empty());
  ASSERT_THAT((*reader)->ReadLayer(0, &layer), IsOk());
  EXPECT_TRUE(layer.attention_norm.gain.empty());
  EXPECT_TRUE(layer.attention_norm.bias.empty());
}

TEST_F(PreNormTest, ModernBertHasAGateWindowsAndTwoRotations) {
  const auto config = Config("modernbert", Json::object());
  ASSERT_THAT(config, IsOk());
  EXPECT_TRUE(config->pre_norm);
  EXPECT_TRUE(config->gated);
  EXPECT_EQ(config->type_vocab_size, 0);
  EXPECT_EQ(config->position_scheme, &RotaryPositions());
  EXPECT_THAT(config->rotations,
              testing::ElementsAre(Rotation{160000, 16}, Rotation{10000, 16}));
  const LayerSpec full = {.reach = {}, .rotation = 0};
  const LayerSpec window = {.reach = {8, 8}, .rotation = 1};
  EXPECT_THAT(config->layers, testing::ElementsAre(full, window, window, full,
                                                   window, window, full));
  EXPECT_THAT(Config("modernbert", {{"rope_scaling", {{"type", "dynamic"}}}}),
              IsError(kUnimplemented, "rope_scaling"));
}

// As the training code of some published models calls it; transformers looks at
// neither word.
TEST_F(PreNormTest, ModernBertsPositionsMayBeCalledSansPos) {
  for (const char* word : {"absolute", "sans_pos"}) {
    const auto config =
        Config("modernbert", {{"position_embedding_type", word}});
    ASSERT_THAT(config, IsOk());
    EXPECT_EQ(config->position_scheme, &RotaryPositions());
  }
  EXPECT_THAT(Config("modernbert", {{"position_embedding_type", "alibi"}}),
              IsError(kUnimplemented,
                      "modernbert supports only absolute and sans_pos "
                      "positions"));
  EXPECT_THAT(Config("gpt2", {{"position_embedding_type", "sans_pos"}}),
              IsError(kUnimplemented, "gpt2 supports only absolute positions"));
}

TEST_F(PreNormTest, NamesBadSizesOfModernBertAndGpt2) {
  const auto expect = [&](const char* name, const char* key, const Json& value,
                          const char* wanted) {
    EXPECT_THAT(Config(name, {{key, value}}),
                IsError(kDataLoss,
                        absl::StrCat("config.json: ", key, " is ",
                                     ShowJson(value), "; expected ", wanted)));
  };
  for (const Json& layers : {Json(0), Json(-1), Json(1025), Json(1000000000)}) {
    expect("modernbert", "num_hidden_layers", layers,
           "a whole number from 1 to 1024");
    expect("gpt2", "n_layer", layers, "a whole number from 1 to 1024");
  }
  expect("modernbert", "local_attention", 0, "a whole number from 1 to ");
  expect("modernbert", "local_attention", -16, "a whole number from 1 to ");
  expect("modernbert", "global_attn_every_n_layers", 0, "a whole number from ");
  expect("modernbert", "global_rope_theta", "160000", "a number from 1 to ");
  expect("modernbert", "local_rope_theta", -10000.0, "a number from 1 to ");
  expect("modernbert", "norm_bias", "no", "true or false");
  expect("modernbert", "num_attention_heads", 5, "a divisor of hidden_size 64");
  expect("gpt2", "n_positions", 0, "a whole number from 1 to ");
  expect("gpt2", "n_inner", -4, "a whole number from 1 to ");
  EXPECT_THAT(Config("modernbert", {{"num_attention_heads", 64}}),
              IsError(kUnimplemented, "heads of an even size, not of 1"));
}

// What no JSON is cannot be a theta either.
TEST_F(PreNormTest, RefusesAThetaThatIsNoNumber) {
  WriteCheckpoint(CheckpointSpecOf("modernbert"), folder_.path());
  for (const char* theta : {"NaN", "Infinity", "-Infinity", "1e999"}) {
    folder_.Write("config.json",
                  absl::StrCat(R"({"model_type": "modernbert", )",
                               R"("global_rope_theta": )", theta, "}"));
    EXPECT_THAT(LoadModelConfig(folder_.path(), 0),
                IsError(kDataLoss, "config.json is not JSON near byte "));
  }
}

// A checkpoint as it is published has a head for language modeling, one that
// was tuned a classifier: outside the encoder, under the same prefix or none.
TEST_F(PreNormTest, PassesOverTheHeadsOfModernBertAndGpt2) {
  struct Heads {
    const char* name;
    const char* prefix;
    std::vector<std::string> tensors;
  };
  const Heads all[] = {
      {"modernbert",
       "model.",
       {"head.dense.weight", "head.norm.weight", "decoder.weight",
        "decoder.bias", "classifier.weight", "classifier.bias"}},
      {"gpt2", "transformer.", {"lm_head.weight", "score.weight"}},
  };
  for (const Heads& heads : all) {
    for (const std::string prefix : {"", heads.prefix}) {
      CheckpointSpec spec = CheckpointSpecOf(heads.name);
      spec.prefix = prefix;
      WriteCheckpoint(spec, folder_.path());
      std::vector<TensorToWrite> tensors = CheckpointTensors(spec);
      for (const std::string& head : heads.tensors)
        tensors.push_back(FloatTensor(head, {1}, {1}));
      const auto reader = Open(tensors);
      ASSERT_THAT(reader, IsOk()) << prefix;
      ASSERT_EQ((*reader)->notes().size(), 1u) << prefix;
      EXPECT_TRUE(absl::StartsWith(
          (*reader)->notes()[0],
          absl::StrCat(heads.tensors.size(), " tensors outside the encoder")))
          << (*reader)->notes()[0];
    }
  }
}

TEST_F(PreNormTest, ModernBertsLengthIsBoundByMaxPositionEmbeddings) {
  auto config = Config("modernbert", Json::object());
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->max_len, 256);
  EXPECT_EQ(config->max_len_source, MaxLenSource::kMaxPositions);
  EXPECT_THAT(LoadModelConfig(folder_.path(), 257),
              IsError(kInvalidArgument, "was trained for 1 to 256 tokens"));
  config = LoadModelConfig(folder_.path(), 100);
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->limits().position_rows, 100);
  config = Config("modernbert", {{"max_position_embeddings", nullptr}});
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->max_len, 8192);
}

}  // namespace
}  // namespace encoderd
