// config.json of published models, and how many parameters transformers 5.23.0
// counts in the model that it makes of each.
#include <gtest/gtest.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "engine/base/batch.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/parameters.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

struct Published {
  const char* name;
  const char* config;
  int64_t token_table;
  int64_t position_table;
  int64_t first_layer;
  int64_t other_layers;  // each
  int64_t total;
  int32_t max_len;
};

// Without the head for language modeling, which no output needs. A rotation
// has no parameters; the first layer of ModernBERT has no attention norm.
constexpr Published kPublished[] = {
    {"gpt2", R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12,
                 "n_head": 12, "n_positions": 1024, "n_ctx": 1024,
                 "vocab_size": 50257, "activation_function": "gelu_new",
                 "layer_norm_epsilon": 1e-05})",
     38'597'376, 786'432, 7'087'872, 7'087'872, 124'439'808, 1024},
    {"gpt2-medium", R"({"model_type": "gpt2", "n_embd": 1024, "n_layer": 24,
                        "n_head": 16, "n_positions": 1024, "n_ctx": 1024,
                        "vocab_size": 50257, "activation_function": "gelu_new",
                        "layer_norm_epsilon": 1e-05})",
     51'463'168, 1'048'576, 12'596'224, 12'596'224, 354'823'168, 1024},
    {"gpt2-large", R"({"model_type": "gpt2", "n_embd": 1280, "n_layer": 36,
                       "n_head": 20, "n_positions": 1024, "n_ctx": 1024,
                       "vocab_size": 50257, "activation_function": "gelu_new",
                       "layer_norm_epsilon": 1e-05})",
     64'328'960, 1'310'720, 19'677'440, 19'677'440, 774'030'080, 1024},
    {"ModernBERT-base",
     R"({"model_type": "modernbert", "hidden_size": 768,
         "num_hidden_layers": 22, "num_attention_heads": 12,
         "intermediate_size": 1152, "vocab_size": 50368,
         "max_position_embeddings": 8192, "hidden_activation": "gelu",
         "norm_eps": 1e-05, "norm_bias": false, "attention_bias": false,
         "mlp_bias": false, "global_attn_every_n_layers": 3,
         "local_attention": 128, "global_rope_theta": 160000.0,
         "local_rope_theta": 10000.0, "position_embedding_type": "absolute"})",
     38'682'624, 0, 5'014'272, 5'015'040, 149'014'272, 8192},
    {"ModernBERT-large",
     R"({"model_type": "modernbert", "hidden_size": 1024,
         "num_hidden_layers": 28, "num_attention_heads": 16,
         "intermediate_size": 2624, "vocab_size": 50368,
         "max_position_embeddings": 8192, "hidden_activation": "gelu",
         "norm_eps": 1e-05, "norm_bias": false, "attention_bias": false,
         "mlp_bias": false, "global_attn_every_n_layers": 3,
         "local_attention": 128, "global_rope_theta": 160000.0,
         "local_rope_theta": 10000.0, "position_embedding_type": "absolute"})",
     51'576'832, 0, 12'256'256, 12'257'280, 394'781'696, 8192},
};

TEST(PublishedShapesTest, ParametersAreThoseOfTheReference) {
  for (const Published& published : kPublished) {
    const TempFolder folder;
    folder.Write("config.json", published.config);
    const absl::StatusOr<ModelConfig> config =
        LoadModelConfig(folder.path(), 0);
    ASSERT_THAT(config, IsOk()) << published.name;
    const ParameterCounts counts = CountParameters(*config);
    EXPECT_EQ(counts.token_table, published.token_table) << published.name;
    EXPECT_EQ(counts.position_table, published.position_table)
        << published.name;
    ASSERT_FALSE(counts.layers.empty()) << published.name;
    EXPECT_EQ(counts.layers.front(), published.first_layer) << published.name;
    for (size_t l = 1; l < counts.layers.size(); ++l) {
      EXPECT_EQ(counts.layers[l], published.other_layers)
          << published.name << " layer " << l;
    }
    EXPECT_EQ(counts.total, published.total) << published.name;
  }
}

TEST(PublishedShapesTest, OneTokenMoreThanMaxLenIsRefusedWithBothNumbers) {
  for (const Published& published : kPublished) {
    const TempFolder folder;
    folder.Write("config.json", published.config);
    const absl::StatusOr<ModelConfig> config =
        LoadModelConfig(folder.path(), 0);
    ASSERT_THAT(config, IsOk()) << published.name;
    EXPECT_EQ(config->max_len, published.max_len) << published.name;
    TokenSequence sequence;
    sequence.token_ids.resize(published.max_len);
    EXPECT_THAT(ValidateSequence(sequence, config->limits()), IsOk());
    sequence.token_ids.push_back(0);
    EXPECT_THAT(ValidateSequence(sequence, config->limits()),
                IsError(absl::StatusCode::kInvalidArgument,
                        absl::StrCat("the input has ", published.max_len + 1,
                                     " tokens; this model takes at most ",
                                     published.max_len)))
        << published.name;
    // Nor does a flag give it a row more.
    EXPECT_THAT(LoadModelConfig(folder.path(), published.max_len + 1),
                IsError(absl::StatusCode::kInvalidArgument,
                        absl::StrCat("max_len is ", published.max_len + 1)));
  }
}

}  // namespace
}  // namespace encoderd
