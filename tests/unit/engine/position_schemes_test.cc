// Drop-in: the same layers served with a learned table or with generated rows,
// from model folders, through the whole engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "engine/checkpoint/positions.h"
#include "engine/model.h"
#include "tests/support/random_checkpoint.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

class PositionSchemesTest : public testing::Test {
 protected:
  void SetUp() override {
    spec_ = CheckpointSpecOf("positions100");
    WriteCheckpoint(spec_, folder_.path());
    table_ = spec_.prefix + "embeddings.position_embeddings.weight";
  }

  void SetConfig(const std::string& key, const nlohmann::json& value) {
    std::ifstream file(folder_.Path("config.json"));
    nlohmann::json config = nlohmann::json::parse(file);
    config[key] = value;
    folder_.Write("config.json", config.dump());
  }

  // The checkpoint as it is, but for its position table: `bytes` instead, or
  // none when empty.
  void WriteWithTable(const std::string& bytes) {
    std::vector<TensorToWrite> tensors = CheckpointTensors(spec_);
    std::erase_if(tensors, [&](TensorToWrite& tensor) {
      if (tensor.name == table_ && !bytes.empty()) tensor.bytes = bytes;
      return tensor.name == table_ && bytes.empty();
    });
    WriteWeights(tensors, 1, folder_.path());
  }

  absl::StatusOr<std::shared_ptr<const Model>> Load(int32_t max_len = 0) {
    return Model::Load(folder_.path(), {.device = "cpu", .max_len = max_len});
  }

  // Every layer's states and the pooled vector of a few sequences.
  static std::vector<float> RunAll(const Model& model) {
    auto session = model.NewSession({});
    EXPECT_THAT(session, IsOk());
    std::mt19937 random(11);
    PackedBatch batch;
    std::vector<SequenceOutput> outputs;
    for (int32_t length : {1, 2, 17, 64, 99, 100}) {
      for (int32_t layer : {0, 1, 2, -1}) {
        TokenSequence sequence;
        for (int32_t i = 0; i < length; ++i) {
          sequence.token_ids.push_back(static_cast<int32_t>(random() % 400));
        }
        batch.Append(sequence, model.info().limits);
        SequenceOutput output = {.normalize = true};
        if (layer >= 0) {
          output = {.kind = SequenceOutput::Kind::kStates, .layer = layer};
        }
        outputs.push_back(output);
      }
    }
    session = model.NewSession({.max_batch_tokens = batch.num_tokens()});
    EXPECT_THAT(session, IsOk());
    ForwardResult result;
    EXPECT_THAT((*session)->Run(batch, outputs, &result), IsOk());
    return result.values;
  }

  CheckpointSpec spec_;
  std::string table_;
  const TempFolder folder_;
};

TEST_F(PositionSchemesTest, ATableThatHoldsTheSinusoidGivesTheBitsOfTheScheme) {
  std::vector<float> rows(spec_.positions * spec_.hidden);
  for (int64_t p = 0; p < spec_.positions; ++p) {
    SinusoidalRow(p, spec_.hidden, rows.data() + p * spec_.hidden);
  }
  WriteWithTable(FloatBytes(rows));
  const auto learned = Load();
  ASSERT_THAT(learned, IsOk());
  const std::vector<float> from_table = RunAll(**learned);

  WriteWithTable("");
  SetConfig("position_embedding_type", "sinusoidal");
  const auto generated = Load(static_cast<int32_t>(spec_.positions));
  ASSERT_THAT(generated, IsOk());
  EXPECT_EQ(RunAll(**generated), from_table);
}

TEST_F(PositionSchemesTest, OtherRowsGiveOtherStates) {
  const auto learned = Load();
  ASSERT_THAT(learned, IsOk());
  const std::vector<float> from_table = RunAll(**learned);
  WriteWithTable("");
  SetConfig("position_embedding_type", "sinusoidal");
  const auto generated = Load(100);
  ASSERT_THAT(generated, IsOk());
  EXPECT_NE(RunAll(**generated), from_table);
}

TEST_F(PositionSchemesTest, GeneratedRowsReachAsFarAsMaxLen) {
  WriteWithTable("");
  SetConfig("position_embedding_type", "sinusoidal");
  SetConfig("max_position_embeddings", nullptr);
  EXPECT_THAT(Load(), IsError(kInvalidArgument, "set max_len"));
  const auto flag = Load(1000);
  ASSERT_THAT(flag, IsOk());
  EXPECT_EQ((*flag)->info().limits.max_len, 1000);
  EXPECT_EQ((*flag)->info().limits.position_rows, 1000);

  folder_.Write("tokenizer_config.json", R"({"model_max_length":300})");
  const auto tokenizer = Load();
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_EQ((*tokenizer)->info().limits.max_len, 300);
  EXPECT_EQ((*tokenizer)->info().config.max_len_source,
            MaxLenSource::kTokenizer);
}

TEST_F(PositionSchemesTest, OneTokenPastGeneratedRowsIsRefusedLikePastATable) {
  WriteWithTable("");
  SetConfig("position_embedding_type", "sinusoidal");
  const auto model = Load(600);
  ASSERT_THAT(model, IsOk());
  const IdLimits& limits = (*model)->info().limits;
  TokenSequence sequence;
  sequence.token_ids.resize(600, 7);
  EXPECT_THAT(ValidateSequence(sequence, limits), IsOk());
  sequence.position_ids.resize(600, 600);
  EXPECT_THAT(ValidateSequence(sequence, limits),
              IsError(kInvalidArgument, "ids are below 600"));
  sequence.position_ids.clear();
  sequence.token_ids.push_back(7);
  EXPECT_THAT(ValidateSequence(sequence, limits),
              IsError(kInvalidArgument, "601 tokens"));
}

TEST_F(PositionSchemesTest, ATableAndASinusoidAreAContradiction) {
  SetConfig("position_embedding_type", "sinusoidal");
  EXPECT_THAT(Load(100), IsError(kUnimplemented, "sinusoidal positions"));
}

// Numbers that differ in a digit that most printing leaves out.
TEST_F(PositionSchemesTest, FingerprintsTellCloseNumbersApart) {
  const auto fingerprint = [&](const std::string& key, double value) {
    SetConfig(key, value);
    return Load().value()->info().fingerprint;
  };
  EXPECT_NE(fingerprint("layer_norm_eps", 1e-5),
            fingerprint("layer_norm_eps", 1.000001e-5));
  WriteCheckpoint(CheckpointSpecOf("modernbert"), folder_.path());
  EXPECT_NE(fingerprint("local_rope_theta", 1234567),
            fingerprint("local_rope_theta", 1234568));
}

}  // namespace
}  // namespace encoderd
