// A model folder whose settings a test changes before it is read.
#ifndef ENCODERD_TESTS_UNIT_ENGINE_CHECKPOINT_MODEL_CONFIG_FIXTURE_H_
#define ENCODERD_TESTS_UNIT_ENGINE_CHECKPOINT_MODEL_CONFIG_FIXTURE_H_

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/checkpoint/model_config.h"
#include "tests/support/temp_folder.h"

namespace encoderd {

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
  static nlohmann::json Modules(const std::vector<std::string>& types) {
    nlohmann::json modules = nlohmann::json::array();
    for (const std::string& type : types) {
      const std::string number = std::to_string(modules.size());
      modules.push_back({{"idx", modules.size()},
                         {"name", number},
                         {"path", modules.empty() ? "" : number + "_" + type},
                         {"type", "sentence_transformers.models." + type}});
    }
    return modules;
  }

  nlohmann::json config_ = {{"model_type", "bert"},
                            {"num_hidden_layers", 6},
                            {"hidden_size", 384},
                            {"num_attention_heads", 12},
                            {"intermediate_size", 1536},
                            {"vocab_size", 30522},
                            {"max_position_embeddings", 512},
                            {"type_vocab_size", 2},
                            {"hidden_act", "gelu"},
                            {"layer_norm_eps", 1e-12}};
  nlohmann::json modules_ = Modules({"Transformer", "Pooling", "Normalize"});
  nlohmann::json pooling_ = {{"word_embedding_dimension", 384},
                             {"pooling_mode_cls_token", false},
                             {"pooling_mode_mean_tokens", true}};
  const TempFolder folder_;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_UNIT_ENGINE_CHECKPOINT_MODEL_CONFIG_FIXTURE_H_
