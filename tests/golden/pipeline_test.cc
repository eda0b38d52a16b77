// sentence-transformers' pipelines with modules after the pooling, through
// Model: the vectors of pipelines.json against data/pipelines.safetensors
// (generate_pipelines.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/pooling.h"
#include "engine/io/safetensors.h"
#include "engine/model.h"
#include "tests/golden/golden.h"
#include "tests/support/random_checkpoint.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tolerances.h"

namespace encoderd {
namespace {

using nlohmann::json;

constexpr char kFolder[] = ENCODERD_SOURCE_DIR "/tests/golden";

json Described() {
  std::ifstream file(absl::StrCat(kFolder, "/pipelines.json"));
  return json::parse(file, nullptr, false);
}

class PipelineTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    described_ = Described();
    pipeline_ = described_["pipelines"][GetParam()];
    texts_ = described_["texts"].get<std::vector<std::string>>();
    auto golden = SafetensorsFile::Open(kFolder, "data/pipelines.safetensors");
    ASSERT_THAT(golden, IsOk());
    golden_ = std::make_unique<SafetensorsFile>(*std::move(golden));
    WriteFolder();
  }

  std::string name() const { return pipeline_["name"]; }

  std::vector<float> Floats(const TensorEntry& entry) const {
    int64_t count = 1;
    for (const int64_t extent : entry.shape) count *= extent;
    std::vector<float> values(count);
    EXPECT_THAT(golden_->ReadFloats(entry, values.data()), IsOk());
    return values;
  }

  // The golden's tensors whose names begin so, without that beginning.
  std::vector<TensorToWrite> Tensors(const std::string& prefix) const {
    std::vector<TensorToWrite> tensors;
    for (const TensorEntry& entry : golden_->tensors()) {
      absl::string_view rest = entry.name;
      if (!absl::ConsumePrefix(&rest, prefix)) continue;
      tensors.push_back(
          FloatTensor(std::string(rest), entry.shape, Floats(entry)));
    }
    return tensors;
  }

  void WriteFolder() {
    CheckpointSpec spec = CheckpointSpecOf(pipeline_["checkpoint"]);
    spec.pooling = pipeline_["pooling"];
    spec.normalize = false;
    WriteCheckpoint(spec, folder_.path());
    std::ifstream file(folder_.Path("modules.json"));
    json modules = json::parse(file);
    for (json module : pipeline_["modules"]) {
      const std::string type = module["type"];
      module.erase("type");  // no setting of the module
      const std::string path = absl::StrCat(modules.size(), "_", type);
      const auto tensors =
          Tensors(absl::StrCat(name(), ".", modules.size(), "."));
      modules.push_back(
          {{"type", "sentence_transformers.models." + type}, {"path", path}});
      folder_.Write(path + "/config.json", module.dump());
      if (tensors.empty()) continue;
      folder_.Write(path + "/model.safetensors", SafetensorsBytes(tensors));
    }
    folder_.Write("modules.json", modules.dump());
  }

  absl::StatusOr<std::shared_ptr<const Model>> Load(const char* dtype) {
    return Model::Load(folder_.path(), {.device = "cpu", .dtype = dtype});
  }

  TokenSequence Ids(const Model& model, const std::string& text) const {
    const TokenizerScratchPtr scratch = model.tokenizer().NewScratch();
    Encoding encoding;
    EXPECT_THAT(model.tokenizer().Encode(text, {}, scratch.get(), &encoding),
                IsOk());
    return {encoding.token_ids, encoding.segment_ids, {}};
  }

  // The pooled vectors of these texts in one batch.
  std::vector<std::vector<float>> Embed(const Model& model,
                                        const std::vector<std::string>& texts,
                                        bool normalize) const {
    PackedBatch batch;
    for (const std::string& text : texts) {
      batch.Append(Ids(model, text), model.info().limits);
    }
    const std::vector<SequenceOutput> outputs(
        texts.size(),
        {.pooling = model.info().config.pooling, .normalize = normalize});
    const auto session = model.NewSession({.max_batch_tokens = 512});
    EXPECT_THAT(session, IsOk());
    ForwardResult result;
    EXPECT_THAT((*session)->Run(batch, outputs, &result), IsOk());
    std::vector<std::vector<float>> vectors;
    for (size_t b = 0; b < texts.size(); ++b) {
      const auto values = result.Output(static_cast<int64_t>(b));
      vectors.emplace_back(values.begin(), values.end());
    }
    return vectors;
  }

  json described_;
  json pipeline_;
  std::vector<std::string> texts_;
  std::unique_ptr<SafetensorsFile> golden_;
  const TempFolder folder_;
};

TEST_P(PipelineTest, VectorsEqualSentenceTransformers) {
  const auto model = Load("fp32");
  ASSERT_THAT(model, IsOk());
  const TensorEntry* entry = golden_->Find(name() + ".vectors");
  ASSERT_NE(entry, nullptr);
  const int64_t width = entry->shape[1];
  EXPECT_EQ((*model)->info().config.dimensions(), width);
  const std::vector<float> all = Floats(*entry);
  const auto vectors =
      Embed(**model, texts_, (*model)->info().config.normalize);
  ASSERT_EQ(all.size(), texts_.size() * width);
  for (size_t i = 0; i < texts_.size(); ++i) {
    ASSERT_EQ(static_cast<int64_t>(vectors[i].size()), width);
    const std::vector<float> want(all.begin() + i * width,
                                  all.begin() + (i + 1) * width);
    const Difference difference = Compare(vectors[i].data(), want);
    EXPECT_LE(difference.max_difference,
              kFp32Vector * std::max(1.0, difference.largest))
        << texts_[i];
    EXPECT_GE(difference.cosine, kFp32Cosine) << texts_[i];
  }
}

TEST_P(PipelineTest, AVectorHasTheSameBitsInAnyBatch) {
  const auto model = Load("fp32");
  ASSERT_THAT(model, IsOk());
  const auto together = Embed(**model, texts_, true);
  for (size_t i = 0; i < texts_.size(); ++i) {
    EXPECT_EQ(Embed(**model, {texts_[i]}, true)[0], together[i]) << texts_[i];
  }
}

TEST_P(PipelineTest, StatesStayAsTheyAreNextToVectors) {
  const auto model = Load("fp32");
  ASSERT_THAT(model, IsOk());
  const int32_t hidden = (*model)->info().config.hidden_size;
  PackedBatch batch;
  for (int i = 0; i < 2; ++i) {
    batch.Append(Ids(**model, texts_[1]), (*model)->info().limits);
  }
  const std::vector<SequenceOutput> outputs = {
      {.kind = SequenceOutput::Kind::kStates, .layer = 2}, {}};
  auto session = (*model)->NewSession({});
  ASSERT_THAT(session, IsOk());
  ForwardResult result;
  ASSERT_THAT((*session)->Run(batch, outputs, &result), IsOk());
  EXPECT_EQ(static_cast<int64_t>(result.Output(0).size()),
            batch.cu_seqlens[1] * hidden);
  EXPECT_EQ(static_cast<int32_t>(result.Output(1).size()),
            (*model)->info().config.dimensions());
}

TEST_P(PipelineTest, TheHeadsParametersAndDigestAreCounted) {
  const auto model = Load("fp32");
  ASSERT_THAT(model, IsOk());
  int64_t values = 0;
  for (size_t i = 0; i < pipeline_["modules"].size(); ++i) {
    for (const auto& tensor : Tensors(absl::StrCat(name(), ".", i + 2, "."))) {
      values += static_cast<int64_t>(tensor.bytes.size()) / 4;
    }
  }
  EXPECT_GT(values, 0);
  EXPECT_EQ((*model)->info().parameters.head, values);
  const std::string digest = (*model)->info().weights_sha256;
  for (size_t i = 0; i < pipeline_["modules"].size(); ++i) {
    const std::string type = pipeline_["modules"][i]["type"];
    const std::string path = absl::StrCat(i + 2, "_", type);
    auto tensors = Tensors(absl::StrCat(name(), ".", i + 2, "."));
    if (tensors.empty()) continue;
    tensors[0].bytes.replace(0, 4, FloatBytes({0.125f}));
    folder_.Write(path + "/model.safetensors", SafetensorsBytes(tensors));
    break;
  }
  const auto changed = Load("fp32");
  ASSERT_THAT(changed, IsOk());
  EXPECT_NE((*changed)->info().weights_sha256, digest);
}

std::vector<int> All() {
  const json described = Described();
  std::vector<int> all(described["pipelines"].size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    Pipelines, PipelineTest, testing::ValuesIn(All()),
    [](const testing::TestParamInfo<int>& info) {
      return Described()["pipelines"][info.param]["name"].get<std::string>();
    });

}  // namespace
}  // namespace encoderd
