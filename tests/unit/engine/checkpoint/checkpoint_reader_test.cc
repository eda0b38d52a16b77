#include "engine/checkpoint/checkpoint_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/model_config.h"
#include "engine/io/sha256.h"
#include "tests/support/random_checkpoint.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

using testing::IsEmpty;
using testing::Not;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

absl::StatusOr<LayerWeights> ReadLayer(CheckpointReader* reader,
                                       int32_t layer) {
  LayerWeights weights;
  const absl::Status status = reader->ReadLayer(layer, &weights);
  if (!status.ok()) return status;
  return weights;
}

class WeightsTest : public testing::Test {
 protected:
  void SetUp() override {
    spec_ = CheckpointSpecOf("odd_sizes");
    tensors_ = CheckpointTensors(spec_);
    WriteCheckpoint(spec_, folder_.path());
  }

  // The reader of the folder with the tensors as they are now.
  absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      bool verified = false) {
    if (write_) WriteWeights(tensors_, 1, folder_.path());
    const auto config = LoadModelConfig(folder_.path(), 0);
    if (!config.ok()) return config.status();
    return CheckpointReader::Open(folder_.path(), *config, verified);
  }

  TensorToWrite& Tensor(const std::string& name) {
    for (TensorToWrite& tensor : tensors_) {
      if (tensor.name == name) return tensor;
    }
    ADD_FAILURE() << "no tensor " << name;
    return tensors_[0];
  }

  void Remove(const std::string& name) {
    std::erase_if(tensors_, [&](const auto& t) { return t.name == name; });
  }

  std::vector<float> Floats(const std::string& name) {
    const std::string& bytes = Tensor(name).bytes;
    std::vector<float> values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  CheckpointSpec spec_;
  std::vector<TensorToWrite> tensors_;
  bool write_ = true;
  const TempFolder folder_;
};

TEST_F(WeightsTest, ReadsTablesAndLayersByRole) {
  const auto reader = Open();
  ASSERT_THAT(reader, IsOk());
  EXPECT_THAT((*reader)->notes(), IsEmpty());
  const auto outer = (*reader)->ReadOuter();
  ASSERT_THAT(outer, IsOk());
  const EmbeddingWeights* const embeddings = &outer->embeddings;
  EXPECT_EQ(embeddings->token.rows, 131);
  EXPECT_EQ(embeddings->token.cols, 39);
  EXPECT_EQ(embeddings->token.floats,
            Floats("embeddings.word_embeddings.weight"));
  EXPECT_EQ(embeddings->position.rows, 37);
  EXPECT_EQ(embeddings->segment.rows, 1);
  EXPECT_EQ(embeddings->norm.gain, Floats("embeddings.LayerNorm.weight"));
  EXPECT_EQ(embeddings->norm.bias, Floats("embeddings.LayerNorm.bias"));
  const auto layer = ReadLayer(reader->get(), 1);
  ASSERT_THAT(layer, IsOk());
  const std::string at = "encoder.layer.1.";
  EXPECT_EQ(layer->attention_output.weight.data,
            Floats(at + "attention.output.dense.weight"));
  EXPECT_EQ(layer->attention_norm.gain,
            Floats(at + "attention.output.LayerNorm.weight"));
  EXPECT_EQ(layer->feed_forward_in.weight.rows, 50);
  EXPECT_EQ(layer->feed_forward_in.weight.cols, 39);
  EXPECT_EQ(layer->feed_forward_out.weight.rows, 39);
  EXPECT_EQ(layer->feed_forward_out.bias, Floats(at + "output.dense.bias"));
  EXPECT_EQ(layer->feed_forward_norm.bias,
            Floats(at + "output.LayerNorm.bias"));
  EXPECT_THAT(ReadLayer(reader->get(), 2), Not(IsOk()));
}

TEST_F(WeightsTest, FusesQueryKeyAndValueInThisOrder) {
  const auto reader = Open();
  ASSERT_THAT(reader, IsOk());
  const auto layer = ReadLayer(reader->get(), 0);
  ASSERT_THAT(layer, IsOk());
  std::vector<float> weight, bias;
  for (const char* part : {"query", "key", "value"}) {
    const std::string name =
        absl::StrCat("encoder.layer.0.attention.self.", part);
    const std::vector<float> w = Floats(name + ".weight");
    const std::vector<float> b = Floats(name + ".bias");
    weight.insert(weight.end(), w.begin(), w.end());
    bias.insert(bias.end(), b.begin(), b.end());
  }
  EXPECT_EQ(layer->qkv.weight.rows, 3 * 39);
  EXPECT_EQ(layer->qkv.weight.cols, 39);
  EXPECT_EQ(layer->qkv.weight.data, weight);
  EXPECT_EQ(layer->qkv.bias, bias);
}

TEST_F(WeightsTest, ALayerTakesTheMemoryOfTheOneBefore) {
  const auto reader = Open();
  ASSERT_THAT(reader, IsOk());
  LayerWeights weights;
  ASSERT_THAT((*reader)->ReadLayer(0, &weights), IsOk());
  const float* const memory = weights.feed_forward_in.weight.data.data();
  ASSERT_THAT((*reader)->ReadLayer(1, &weights), IsOk());
  EXPECT_EQ(weights.feed_forward_in.weight.data.data(), memory);
  const LayerWeights fresh = ReadLayer(reader->get(), 1).value();
  EXPECT_EQ(weights.qkv.weight.rows, fresh.qkv.weight.rows);
  EXPECT_EQ(weights.qkv.weight.data, fresh.qkv.weight.data);
  EXPECT_EQ(weights.qkv.bias, fresh.qkv.bias);
  EXPECT_EQ(weights.feed_forward_in.weight.data,
            fresh.feed_forward_in.weight.data);
  EXPECT_EQ(weights.attention_norm.gain, fresh.attention_norm.gain);
  EXPECT_EQ(weights.attention_norm.bias, fresh.attention_norm.bias);
}

// As GPT-2 has it: Q, K and V in one tensor, stored as [in,out].
TEST_F(WeightsTest, ReadsQueryKeyAndValueOfOneTransposedTensor) {
  const LayerWeights apart = ReadLayer(Open().value().get(), 1).value();
  const int64_t h = spec_.hidden;
  ModelConfig config = LoadModelConfig(folder_.path(), 0).value();
  std::vector<TensorRow>& rows = config.tensors.rows;
  std::erase_if(rows, [](const auto& row) { return row.role == Role::kQkv; });
  rows.push_back({.role = Role::kQkv,
                  .name = "encoder.layer.{layer}.c_attn",
                  .shape = "3H,H",
                  .in_layer = true,
                  .bias = true,
                  .transposed = true});
  std::erase_if(tensors_, [](const TensorToWrite& tensor) {
    return tensor.name.find("attention.self.") != std::string::npos;
  });
  std::vector<float> transposed(3 * h * h);
  for (int64_t o = 0; o < 3 * h; ++o) {
    for (int64_t i = 0; i < h; ++i)
      transposed[i * 3 * h + o] = apart.qkv.weight.Row(o)[i];
  }
  for (const char* layer : {"0", "1"}) {
    const std::string name = absl::StrCat("encoder.layer.", layer, ".c_attn");
    tensors_.push_back(FloatTensor(name + ".weight", {h, 3 * h}, transposed));
    tensors_.push_back(FloatTensor(name + ".bias", {3 * h}, apart.qkv.bias));
  }
  WriteWeights(tensors_, 1, folder_.path());
  const auto reader = CheckpointReader::Open(folder_.path(), config);
  ASSERT_THAT(reader, IsOk());
  const LayerWeights fused = ReadLayer(reader->get(), 1).value();
  EXPECT_EQ(fused.qkv.weight.rows, 3 * h);
  EXPECT_EQ(fused.qkv.weight.cols, h);
  EXPECT_EQ(fused.qkv.weight.data, apart.qkv.weight.data);
  EXPECT_EQ(fused.qkv.bias, apart.qkv.bias);
}

TEST_F(WeightsTest, ABiasThatTheTableLacksIsZeros) {
  ModelConfig config = LoadModelConfig(folder_.path(), 0).value();
  for (TensorRow& row : config.tensors.rows) row.bias = false;
  std::erase_if(tensors_, [](const TensorToWrite& tensor) {
    return tensor.name.find(".bias") != std::string::npos;
  });
  WriteWeights(tensors_, 1, folder_.path());
  const auto reader = CheckpointReader::Open(folder_.path(), config);
  ASSERT_THAT(reader, IsOk());
  LayerWeights layer;  // as a larger layer left it
  layer.attention_norm.bias.assign(500, 7.0f);
  layer.feed_forward_in.bias.assign(500, 7.0f);
  ASSERT_THAT((*reader)->ReadLayer(0, &layer), IsOk());
  EXPECT_EQ(layer.attention_norm.bias, std::vector<float>(39));
  EXPECT_EQ(layer.feed_forward_in.bias, std::vector<float>(50));
}

TEST_F(WeightsTest, FindsTheNamesBehindAnyPrefix) {
  for (TensorToWrite& tensor : tensors_) tensor.name = "a.b." + tensor.name;
  EXPECT_THAT(Open(), IsOk());
}

TEST_F(WeightsTest, ReadsTheLayerNormNamesOfTensorFlowsCheckpoints) {
  const std::vector<float> gain = Floats("embeddings.LayerNorm.weight");
  for (TensorToWrite& tensor : tensors_) {
    const size_t at = tensor.name.find("LayerNorm.");
    if (at == std::string::npos) continue;
    const bool weight = tensor.name.find(".weight") != std::string::npos;
    tensor.name.resize(at);
    tensor.name += weight ? "LayerNorm.gamma" : "LayerNorm.beta";
  }
  const auto reader = Open();
  ASSERT_THAT(reader, IsOk());
  EXPECT_EQ((*reader)->ReadOuter().value().embeddings.norm.gain, gain);
}

TEST_F(WeightsTest, AModelWithoutSegmentsHasNoSegmentRows) {
  spec_ = CheckpointSpecOf("no_segments");
  WriteCheckpoint(spec_, folder_.path());
  write_ = false;
  const auto reader = Open();
  ASSERT_THAT(reader, IsOk());
  EXPECT_EQ((*reader)->ReadOuter().value().embeddings.segment.rows, 0);
}

TEST_F(WeightsTest, IgnoresAndNotesTensorsBesidesTheEncoders) {
  tensors_.push_back(FloatTensor("pooler.dense.weight", {2}, {1, NAN}));
  tensors_.push_back(FloatTensor("cls.predictions.bias", {1}, {1}));
  tensors_.push_back({"embeddings.position_ids", "I64", {1}, "12345678"});
  const auto reader = Open();
  ASSERT_THAT(reader, IsOk());
  ASSERT_EQ((*reader)->notes().size(), 1u);
  EXPECT_EQ((*reader)->notes()[0],
            "2 tensors outside the encoder are ignored: "
            "'cls.predictions.bias', 'pooler.dense.weight'");
}

TEST_F(WeightsTest, PassesOverTheBuffersOfTheLayersThatItHas) {
  tensors_.push_back(FloatTensor("encoder.layer.1.mask", {1}, {1}));
  EXPECT_THAT(Open(), IsError(kUnimplemented, "encoder.layer.1.mask"));
  ModelConfig config = LoadModelConfig(folder_.path(), 0).value();
  config.tensors.ignored.push_back("encoder.layer.{layer}.mask");
  EXPECT_THAT(CheckpointReader::Open(folder_.path(), config), IsOk());
  tensors_.push_back(FloatTensor("encoder.layer.2.mask", {1}, {1}));
  WriteWeights(tensors_, 1, folder_.path());
  EXPECT_THAT(CheckpointReader::Open(folder_.path(), config),
              IsError(kUnimplemented, "encoder.layer.2.mask"));
}

TEST_F(WeightsTest, RefusesATensorWithinTheEncoderThatItDoesNotKnow) {
  tensors_.push_back(FloatTensor(
      "encoder.layer.0.attention.self.distance_embedding.weight", {1}, {1}));
  EXPECT_THAT(Open(), IsError(kUnimplemented, "distance_embedding"));
  tensors_.pop_back();
  tensors_.push_back(
      FloatTensor("encoder.layer.2.output.dense.bias", {1}, {1}));
  EXPECT_THAT(Open(), IsError(kUnimplemented, "with 2 layers"));
  tensors_.pop_back();
  tensors_.push_back(FloatTensor("embeddings.projection.weight", {1}, {1}));
  EXPECT_THAT(Open(), IsError(kUnimplemented, "embeddings.projection"));
}

TEST_F(WeightsTest, NamesATensorThatIsMissing) {
  for (const char* name :
       {"embeddings.word_embeddings.weight",
        "embeddings.position_embeddings.weight",
        "embeddings.token_type_embeddings.weight", "embeddings.LayerNorm.bias",
        "encoder.layer.1.attention.self.key.bias",
        "encoder.layer.0.output.dense.weight"}) {
    tensors_ = CheckpointTensors(spec_);
    Remove(name);
    EXPECT_THAT(Open(), IsError(kDataLoss, name));
  }
}

TEST_F(WeightsTest, NamesAWrongShapeAndTheOneWanted) {
  TensorToWrite& positions = Tensor("embeddings.position_embeddings.weight");
  positions.shape = {36, 39};
  positions.bytes.resize(36 * 39 * 4);
  EXPECT_THAT(Open(), IsError(kDataLoss,
                              "embeddings.position_embeddings.weight has the "
                              "shape [36,39]; config.json requires [37,39]"));
}

TEST_F(WeightsTest, RefusesATransposedMatrix) {
  Tensor("encoder.layer.0.intermediate.dense.weight").shape = {39, 50};
  EXPECT_THAT(Open(),
              IsError(kDataLoss, "[39,50]; config.json requires [50,39]"));
}

TEST_F(WeightsTest, RefusesWeightsOfOtherDtypesByName) {
  TensorToWrite& bias = Tensor("embeddings.LayerNorm.bias");
  bias.dtype = "I32";
  EXPECT_THAT(Open(), IsError(kUnimplemented, "bias has the dtype I32"));
}

TEST_F(WeightsTest, NamesAWeightThatIsNotFinite) {
  TensorToWrite& tensor = Tensor("encoder.layer.1.output.dense.weight");
  std::vector<float> values = Floats(tensor.name);
  values[77] = INFINITY;
  tensor.bytes = FloatBytes(values);
  const auto reader = Open();
  ASSERT_THAT(reader, IsOk());
  EXPECT_THAT((*reader)->ReadOuter(), IsOk());
  EXPECT_THAT(ReadLayer(reader->get(), 0), IsOk());
  EXPECT_THAT(ReadLayer(reader->get(), 1),
              IsError(kDataLoss,
                      "'encoder.layer.1.output.dense.weight' has the value inf "
                      "at index 77"));
}

TEST_F(WeightsTest, NamesAMatrixThatEndsInZeros) {
  std::string& bytes = Tensor("encoder.layer.1.output.dense.weight").bytes;
  std::fill(bytes.begin() + bytes.size() / 2, bytes.end(), '\0');
  EXPECT_THAT(
      ReadLayer(Open().value().get(), 1),
      IsError(kDataLoss, "layer.1.output.dense.weight are zeros, as after"));
  EXPECT_THAT(ReadLayer(Open(/*verified=*/true).value().get(), 1), IsOk());
  bytes.back() = '\x3f';  // of the last value: 0.5
  EXPECT_THAT(ReadLayer(Open().value().get(), 1), IsOk());
}

TEST_F(WeightsTest, RefusesTwoEncodersInOneFile) {
  std::vector<TensorToWrite> all;
  for (TensorToWrite tensor : tensors_) {
    tensor.name = "query." + tensor.name;
    all.push_back(tensor);
    tensor.name = "passage." + tensor.name.substr(6);
    all.push_back(tensor);
  }
  tensors_ = all;
  EXPECT_THAT(Open(), IsError(kUnimplemented, "2 encoders in one file"));
}

// transformers would compute with the prefixed one.
TEST_F(WeightsTest, RefusesATensorThatIsThereBareAndWithAPrefix) {
  TensorToWrite tensor = Tensor("embeddings.LayerNorm.bias");
  tensors_.push_back(tensor);
  for (const char* name :
       {"bert.embeddings.LayerNorm.bias", "a.b.embeddings.LayerNorm.beta"}) {
    tensors_.back().name = name;
    EXPECT_THAT(Open(),
                IsError(kUnimplemented,
                        absl::StrCat("the tensors '", name, "' and '",
                                     tensor.name, "' are of two encoders")));
  }
  // A part of a word is no prefix.
  tensors_.back().name = "a_" + tensor.name;
  EXPECT_THAT(Open(), IsOk());
  // transformers ignores a bare tensor where the others have a prefix.
  for (TensorToWrite& other : tensors_) other.name = "bert." + other.name;
  tensors_.back() = tensor;
  EXPECT_THAT(Open(), IsOk());
}

TEST_F(WeightsTest, AFileCutDuringLoadingIsAnErrorAndNoSignal) {
  const auto reader = Open();
  ASSERT_THAT(reader, IsOk());
  ASSERT_EQ(::truncate(folder_.Path("model.safetensors").c_str(), 20000), 0);
  EXPECT_THAT((*reader)->ReadOuter(), IsError(kDataLoss, "ends at byte"));
  EXPECT_THAT(ReadLayer(reader->get(), 1), IsError(kDataLoss, "ends at byte"));
  EXPECT_THAT((*reader)->Sha256(), IsError(kDataLoss, "ends at byte"));
}

TEST_F(WeightsTest, RefusesPickledWeightsAndSaysHowToConvert) {
  write_ = false;
  for (const char* name : {"pytorch_model.bin", "model.pt", "model.pth"}) {
    std::filesystem::remove(folder_.Path("model.safetensors"));
    folder_.Write(name, "\x80\x02");
    const auto reader = Open();
    EXPECT_THAT(reader, IsError(kUnimplemented, name));
    // Its modules may have pickled weights, too.
    EXPECT_THAT(reader,
                IsError(kUnimplemented, "SentenceTransformer('FOLDER'"));
    std::filesystem::remove(folder_.Path(name));
  }
  EXPECT_THAT(Open(), IsError(absl::StatusCode::kNotFound,
                              "neither model.safetensors nor"));
  std::filesystem::remove(folder_.Path("modules.json"));
  folder_.Write("model.bin", "\x80\x02");
  EXPECT_THAT(Open(), IsError(kUnimplemented, "save_pretrained('NEW')"));
}

TEST_F(WeightsTest, GivesTheDigestOfTheFile) {
  const auto reader = Open();
  ASSERT_THAT(reader, IsOk());
  EXPECT_EQ((*reader)->Sha256().value(),
            Sha256OfString(SafetensorsBytes(tensors_)).value());
}

}  // namespace
}  // namespace encoderd
