// What holds for the checkpoint of every architecture: each tensor that it
// needs is named when it is missing or of another shape, and none that it does
// not know is passed over.
#include "engine/checkpoint/architecture.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/batch.h"
#include "engine/checkpoint/model_config.h"
#include "tests/support/random_checkpoint.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/engine/checkpoint/architecture_fixture.h"

namespace encoderd {
namespace {

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

// The first checkpoint of every model_type.
std::vector<CheckpointSpec> OneOfEach() {
  std::vector<CheckpointSpec> specs;
  std::set<std::string> seen;
  for (const CheckpointSpec& spec : AllCheckpointSpecs()) {
    if (spec.shards == 1 && seen.insert(spec.model_type).second) {
      specs.push_back(spec);
    }
  }
  return specs;
}

TEST_F(ArchitectureTest, HasACheckpointOfEveryRow) {
  std::vector<std::string> names;
  for (const CheckpointSpec& spec : OneOfEach()) {
    EXPECT_NE(FindArchitecture(spec.model_type), nullptr) << spec.model_type;
    names.push_back(spec.model_type);
  }
  for (const std::string& name : names) {
    EXPECT_TRUE(absl::StrContains(SupportedArchitectures(), name)) << name;
  }
  const std::string all = SupportedArchitectures();
  EXPECT_EQ(std::count(all.begin(), all.end(), ',') + 1,
            static_cast<int64_t>(names.size()))
      << all;
}

TEST_F(ArchitectureTest, NamesEveryTensorThatIsMissing) {
  for (const CheckpointSpec& spec : OneOfEach()) {
    WriteCheckpoint(spec, folder_.path());
    const std::vector<TensorToWrite> tensors = CheckpointTensors(spec);
    ASSERT_THAT(Open(tensors), IsOk()) << spec.model_type;
    for (size_t i = 0; i < tensors.size(); ++i) {
      std::vector<TensorToWrite> others = tensors;
      others.erase(others.begin() + static_cast<int64_t>(i));
      // Without the token table there is no telling the prefix.
      const std::string name =
          i == 0 ? tensors[0].name.substr(spec.prefix.size()) : tensors[i].name;
      EXPECT_THAT(Open(others), IsError(kDataLoss, name));
    }
  }
}

TEST_F(ArchitectureTest, NamesEveryTensorOfAnotherShape) {
  for (const CheckpointSpec& spec : OneOfEach()) {
    WriteCheckpoint(spec, folder_.path());
    std::vector<TensorToWrite> tensors = CheckpointTensors(spec);
    for (TensorToWrite& tensor : tensors) {
      const TensorToWrite right = tensor;
      const size_t row = tensor.bytes.size() / tensor.shape[0];
      tensor.shape[0] += 1;
      tensor.bytes.append(row, '\0');
      EXPECT_THAT(
          Open(tensors),
          IsError(kDataLoss, absl::StrCat(right.name, " has the shape [",
                                          tensor.shape[0])));
      tensor = right;
    }
  }
}

TEST_F(ArchitectureTest, RefusesATensorOfTheStackThatItDoesNotKnow) {
  for (const CheckpointSpec& spec : OneOfEach()) {
    WriteCheckpoint(spec, folder_.path());
    const std::vector<TensorToWrite> tensors = CheckpointTensors(spec);
    for (const TensorToWrite& tensor : tensors) {
      if (!absl::EndsWith(tensor.name, ".weight")) continue;
      std::vector<TensorToWrite> more = tensors;
      more.push_back(FloatTensor(tensor.name + "_g", {1}, {1}));
      EXPECT_THAT(Open(more), IsError(kUnimplemented, tensor.name + "_g"));
    }
  }
}

TEST_F(ArchitectureTest, RefusesWhatIsNoPlainEncoderInEveryArchitecture) {
  for (const CheckpointSpec& spec : OneOfEach()) {
    EXPECT_THAT(Config(spec.name, {{"is_decoder", true}}),
                IsError(kUnimplemented, "is_decoder"));
    // transformers masks by it, whatever the architecture is.
    const bool causal = spec.name == "gpt2" || spec.name == "gpt2_odd";
    EXPECT_THAT(Config(spec.name, {{"is_causal", causal}}), IsOk());
    EXPECT_THAT(Config(spec.name, {{"is_causal", !causal}}),
                IsError(kUnimplemented, "is_causal"));
    // Null is false to it.
    EXPECT_EQ(Config(spec.name, {{"is_causal", nullptr}}).ok(), !causal);
    for (const char* scheme : {"relative_key", "relative_key_query", "rotary"})
      EXPECT_THAT(Config(spec.name, {{"position_embedding_type", scheme}}),
                  IsError(kUnimplemented, scheme));
  }
}

TEST_F(ArchitectureTest, PositionsOfTheRobertaFamilyStartAfterThePadding) {
  for (const char* name : {"roberta", "xlm_roberta", "camembert"}) {
    const auto config = Config(name, {{"pad_token_id", 3}});
    ASSERT_THAT(config, IsOk());
    EXPECT_EQ(config->position_offset, 4);
    EXPECT_EQ(config->max_len, config->max_position_embeddings - 4);
  }
  EXPECT_EQ(Config("roberta", {{"pad_token_id", nullptr}})->position_offset, 2);
  EXPECT_EQ(Config("tanh_cls", {{"pad_token_id", 3}})->position_offset, 0);
}

TEST_F(ArchitectureTest, RefusesAPaddingTokenWithoutARow) {
  EXPECT_THAT(
      Config("roberta", {{"pad_token_id", 65}}),
      IsError(kDataLoss,
              "max_position_embeddings is 66; expected more than the 66 "
              "rows that are not for tokens"));
  EXPECT_THAT(Config("roberta", {{"pad_token_id", 300}}),
              IsError(kDataLoss, "pad_token_id is 300"));
  EXPECT_THAT(Config("roberta", {{"pad_token_id", -1}}),
              IsError(kDataLoss, "pad_token_id is -1"));
}

TEST_F(ArchitectureTest, DistilBertHasNoSegmentsAndAnotherEpsilon) {
  const auto config =
      Config("distilbert", {{"layer_norm_eps", 0.5}, {"type_vocab_size", 2}});
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->hidden_size, 64);
  EXPECT_EQ(config->type_vocab_size, 0);
  EXPECT_EQ(config->layer_norm_eps, 1e-12f);
  EXPECT_THAT(Config("distilbert", {{"n_heads", 7}}),
              IsError(kDataLoss, "n_heads is 7; expected a divisor of dim 64"));
  EXPECT_THAT(Config("distilbert", {{"activation", "silu"}}),
              IsError(kUnimplemented, "activation 'silu'"));
}

TEST_F(ArchitectureTest, ElectraProjectsOnlyBetweenDifferentSizes) {
  EXPECT_EQ(Config("electra", Json::object())->embedding_size, 32);
  EXPECT_EQ(Config("electra_plain", Json::object())->embedding_size, 0);
  EXPECT_EQ(Config("electra_plain", Json::object())->table_columns(), 64);
  EXPECT_EQ(Config("electra", {{"embedding_size", nullptr}})->embedding_size,
            128);
  EXPECT_THAT(Config("electra", {{"embedding_size", 0}}),
              IsError(kDataLoss, "embedding_size is 0"));
  // What config.json and checkpoint say of the projection must agree.
  const CheckpointSpec spec = CheckpointSpecOf("electra_plain");
  WriteCheckpoint(spec, folder_.path());
  std::vector<TensorToWrite> tensors = CheckpointTensors(spec);
  tensors.push_back(FloatTensor("electra.embeddings_project.bias", {1}, {1}));
  EXPECT_THAT(Open(tensors), IsError(kUnimplemented, "embeddings_project"));
}

TEST_F(ArchitectureTest, AlbertSharesLayersInGroups) {
  auto config = Config("albert", Json::object());
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->num_hidden_layers, 4);
  EXPECT_EQ(config->distinct_layers(), 1);
  EXPECT_THAT(config->layer_weights, testing::ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(config->embedding_size, 24);
  config = Config("albert_groups", Json::object());
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->num_hidden_layers, 6);
  EXPECT_EQ(config->distinct_layers(), 4);
  EXPECT_THAT(config->layer_weights, testing::ElementsAre(0, 1, 0, 1, 2, 3));
  EXPECT_EQ(config->embedding_size, 48) << "even between equal sizes";
  config = Config(
      "albert", {{"num_hidden_groups", nullptr}, {"inner_group_num", nullptr}});
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->distinct_layers(), 1);
}

TEST_F(ArchitectureTest, AlbertHasAnActivationByDefault) {
  EXPECT_THAT(Config("albert", {{"hidden_act", nullptr}}),
              IsError(kUnimplemented, "hidden_act null is not supported"));
  std::ifstream file(folder_.Path("config.json"));
  Json json = Json::parse(file);
  json.erase("hidden_act");
  folder_.Write("config.json", json.dump());
  const auto config = LoadModelConfig(folder_.path(), 0);
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->hidden_act, Activation::kGeluTanh);
}

TEST_F(ArchitectureTest, RefusesMoreGroupsThanLayers) {
  EXPECT_THAT(
      Config("albert", {{"num_hidden_groups", 5}}),
      IsError(kDataLoss,
              "num_hidden_groups is 5; expected a whole number from 1 to "
              "4"));
  EXPECT_THAT(Config("albert", {{"inner_group_num", 0}}),
              IsError(kDataLoss, "inner_group_num is 0"));
  EXPECT_THAT(Config("albert", {{"inner_group_num", 1000}}),
              IsError(kDataLoss, "inner_group_num is 1000"));
}

// Every number of groups that fits: each group runs, and in order.
TEST_F(ArchitectureTest, RunsEveryGroupOfEveryDivision) {
  for (const int steps : {1, 2, 3, 7, 12, 49}) {
    for (int groups = 1; groups <= steps; ++groups) {
      const auto config = Config("albert", {{"num_hidden_layers", steps},
                                            {"num_hidden_groups", groups}});
      ASSERT_THAT(config, IsOk());
      ASSERT_EQ(config->distinct_layers(), groups) << steps;
      for (int step = 1; step < steps; ++step) {
        const int next = config->layer_weights[step];
        const int before = config->layer_weights[step - 1];
        EXPECT_TRUE(next == before || next == before + 1)
            << groups << " of " << steps;
      }
    }
  }
}

TEST_F(ArchitectureTest, MpNetHasABiasAndPositionsAfterRowOne) {
  auto config = Config("mpnet", {{"type_vocab_size", 2}});
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->type_vocab_size, 0);
  EXPECT_EQ(config->position_offset, 2);
  EXPECT_EQ(config->max_len, 200);
  EXPECT_EQ(config->position_scheme, &RelativeBiasPositions());
  EXPECT_EQ(config->attention_bias_rows, 32);
  EXPECT_EQ(Config("mpnet", {{"pad_token_id", 9}})->position_offset, 2);
  config = Config("mpnet", {{"relative_attention_num_buckets", nullptr}});
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->attention_bias_rows, 32);
  EXPECT_THAT(Config("mpnet", {{"relative_attention_num_buckets", 31}}),
              IsError(kDataLoss, "relative_attention_num_buckets is 31"));
  EXPECT_THAT(
      Config("mpnet", {{"position_embedding_type", "sinusoidal"}}),
      IsError(kUnimplemented, "mpnet supports only absolute positions"));
}

TEST_F(ArchitectureTest, FiveHundredAndFourteenRowsHoldFiveHundredAndTwelve) {
  WriteCheckpoint(CheckpointSpecOf("xlm_roberta"), folder_.path());
  const auto config = LoadModelConfig(folder_.path(), 0);
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->max_position_embeddings, 514);
  EXPECT_EQ(config->max_len, 512);
  EXPECT_THAT(LoadModelConfig(folder_.path(), 513),
              IsError(kInvalidArgument, "rows for 1 to 512 tokens"));
  folder_.Write("sentence_bert_config.json", R"({"max_seq_length":514})");
  const auto of_table = LoadModelConfig(folder_.path(), 0);
  ASSERT_THAT(of_table, IsOk());
  EXPECT_EQ(of_table->max_len, 512);
  EXPECT_THAT(
      of_table->notes,
      testing::Contains("max_seq_length 514 is ignored: the position table has "
                        "rows for 512 tokens"));
}

}  // namespace
}  // namespace encoderd
