// The files of the modules after pooling; what they compute is tested against
// sentence-transformers in tests/golden.
#include "engine/checkpoint/head_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/base/head.h"
#include "engine/checkpoint/model_config.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

using Json = nlohmann::json;
using Kind = HeadModule::Kind;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kNotFound = absl::StatusCode::kNotFound;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

class HeadTest : public testing::Test {
 protected:
  HeadTest() {
    folder_.Write("config.json", R"({"model_type":"bert","hidden_size":4,
      "num_hidden_layers":1,"num_attention_heads":1,"intermediate_size":4,
      "vocab_size":10,"max_position_embeddings":8})");
    folder_.Write("1_Pooling/config.json", R"({"pooling_mode":"mean"})");
    SetTensors({FloatTensor("linear.weight", {2, 4}, weight_),
                FloatTensor("linear.bias", {2}, {0.5f, -0.5f})});
  }

  void SetTensors(const std::vector<TensorToWrite>& tensors) {
    folder_.Write("2_Dense/model.safetensors", SafetensorsBytes(tensors));
  }

  // The config of a pipeline with these modules after the pooling.
  absl::StatusOr<ModelConfig> Config(const std::vector<std::string>& types) {
    Json modules = Json::array();
    std::vector<std::string> all = {"Transformer", "Pooling"};
    all.insert(all.end(), types.begin(), types.end());
    for (const std::string& type : all) {
      const std::string path = std::to_string(modules.size()) + "_" + type;
      modules.push_back({{"path", modules.empty() ? "" : path},
                         {"type", "sentence_transformers.models." + type}});
    }
    folder_.Write("modules.json", modules.dump());
    folder_.Write("2_Dense/config.json", dense_.dump());
    return LoadModelConfig(folder_.path(), 0);
  }

  absl::StatusOr<HeadCheckpoint> Head() {
    const auto config = Config({"Dense"});
    if (!config.ok()) return config.status();
    return ReadHead(folder_.path(), config->head);
  }

  const std::vector<float> weight_ = {1, 2, 3, 4, 0, 0, 1, -1};
  Json dense_ = {{"in_features", 4},
                 {"out_features", 2},
                 {"bias", true},
                 {"activation_function", "torch.nn.modules.linear.Identity"}};
  const TempFolder folder_;
};

TEST_F(HeadTest, ReadsADenseModule) {
  const auto config = Config({"Dense", "Normalize"});
  ASSERT_THAT(config, IsOk());
  ASSERT_EQ(config->head.size(), 1u);
  EXPECT_EQ(config->head[0].kind, Kind::kDense);
  EXPECT_EQ(config->head[0].folder, "2_Dense");
  EXPECT_EQ(config->dimensions(), 2);
  EXPECT_EQ(config->hidden_size, 4);
  EXPECT_TRUE(config->normalize);
}

TEST_F(HeadTest, MultipliesAddsAndBends) {
  auto head = Head();
  ASSERT_THAT(head, IsOk());
  std::vector<float> x = {1, 1, 2, 0.5f}, y(4);
  head->head->Apply(&x, &y);
  EXPECT_EQ(x[0], 1 + 2 + 6 + 2 + 0.5f);
  EXPECT_EQ(x[1], 2 - 0.5f - 0.5f);
  EXPECT_EQ(head->sha256.size(), 1u);

  dense_.erase("activation_function");  // Tanh
  dense_["bias"] = false;
  SetTensors({FloatTensor("linear.weight", {2, 4}, weight_)});
  head = Head();
  ASSERT_THAT(head, IsOk());
  x = {0.25f, 0, 0, 0.5f};
  head->head->Apply(&x, &y);
  EXPECT_NEAR(x[0], std::tanh(2.25), 1e-7);
  EXPECT_NEAR(x[1], std::tanh(-0.5), 1e-7);
}

TEST_F(HeadTest, DropoutChangesNothingAndNormalizeInTheMiddleStays) {
  const auto config = Config({"Dense", "Dropout", "Normalize", "Dropout"});
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->head.size(), 1u);
  EXPECT_TRUE(config->normalize);
  folder_.Write("4_LayerNorm/config.json", R"({"dimension":2})");
  const auto middle = Config({"Dense", "Normalize", "LayerNorm"});
  ASSERT_THAT(middle, IsOk());
  ASSERT_EQ(middle->head.size(), 3u);
  EXPECT_EQ(middle->head[1].kind, Kind::kNormalize);
  EXPECT_EQ(middle->head[1].in, 2);
  EXPECT_FALSE(middle->normalize);
}

TEST_F(HeadTest, RefusesByNameWhatItCannotCompute) {
  dense_["activation_function"] = "torch.nn.modules.activation.GELU";
  EXPECT_THAT(Config({"Dense"}),
              IsError(kUnimplemented, "'torch.nn.modules.activation.GELU'"));
  dense_["activation_function"] = "torch.nn.modules.activation.Tanh";
  dense_["use_residual"] = true;
  EXPECT_THAT(Config({"Dense"}), IsError(kUnimplemented, "use_residual"));
  dense_["use_residual"] = false;
  dense_["module_input_name"] = "token_embeddings";
  EXPECT_THAT(Config({"Dense"}), IsError(kUnimplemented, "'token_embeddings'"));
}

// sentence-transformers fails at them.
TEST_F(HeadTest, RefusesANullActivationAndUnknownMembersOfALayerNorm) {
  dense_["activation_function"] = nullptr;
  EXPECT_THAT(Config({"Dense"}),
              IsError(kUnimplemented,
                      "2_Dense/config.json: activation_function null is not "
                      "supported; supported: Tanh, Identity"));
  folder_.Write("2_LayerNorm/config.json", R"({"dimension":4,"eps":1.0})");
  EXPECT_THAT(Config({"LayerNorm"}),
              IsError(kUnimplemented,
                      "2_LayerNorm/config.json: eps 1.0 is not supported; "
                      "supported: dimension"));
}

TEST_F(HeadTest, RefusesWidthsThatDoNotFit) {
  dense_["in_features"] = 5;
  EXPECT_THAT(Config({"Dense"}),
              IsError(kDataLoss,
                      "2_Dense takes 5 values; the preceding one returns 4"));
  dense_["in_features"] = 4;
  dense_["out_features"] = 0;
  EXPECT_THAT(Config({"Dense"}), IsError(kDataLoss, "out_features is 0"));
}

TEST_F(HeadTest, RefusesWeightsThatAreNotAsTheConfigSays) {
  SetTensors({FloatTensor("linear.weight", {4, 2}, weight_),
              FloatTensor("linear.bias", {2}, {0, 0})});
  EXPECT_THAT(Head(), IsError(kDataLoss, "linear.weight has the shape"));
  SetTensors({FloatTensor("linear.weight", {2, 4}, weight_)});
  EXPECT_THAT(Head(), IsError(kDataLoss, "linear.bias"));
  SetTensors({FloatTensor("linear.weight", {2, 4}, weight_),
              FloatTensor("linear.bias", {2}, {0, 0}),
              FloatTensor("residual.weight", {2, 4}, weight_)});
  EXPECT_THAT(Head(), IsError(kUnimplemented, "3 tensors"));
  SetTensors({FloatTensor("linear.weight", {2, 4}, weight_),
              FloatTensor("linear.bias", {2}, {0, std::nanf("")})});
  EXPECT_THAT(Head(), IsError(kDataLoss, "nan"));
}

TEST_F(HeadTest, RefusesPickledWeights) {
  ASSERT_THAT(Head(), IsOk());
  std::filesystem::remove(folder_.Path("2_Dense/model.safetensors"));
  EXPECT_THAT(Head(), IsError(kNotFound, "2_Dense"));
  folder_.Write("2_Dense/pytorch_model.bin", "x");
  EXPECT_THAT(Head(), IsError(kUnimplemented, "module 2_Dense: "));
}

}  // namespace
}  // namespace encoderd
