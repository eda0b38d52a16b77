// What GetModel and ListModels report about a model.
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/rpc/convert.h"
#include "tests/support/fake_tokenizer.h"

namespace encoderd {
namespace {

// Nothing but what it says about itself.
class GivenModel final : public Model {
 public:
  explicit GivenModel(ModelInfo info) : info_(std::move(info)) {}
  const ModelInfo& info() const override { return info_; }
  const Tokenizer& tokenizer() const override { return tokenizer_; }
  const HostMatrix& position_rows() const override { return rows_; }
  absl::StatusOr<std::unique_ptr<Session>> NewSession(
      const SessionOptions&) const override {
    return absl::UnimplementedError("computes nothing");
  }

 private:
  const ModelInfo info_;
  FakeTokenizer tokenizer_;
  HostMatrix rows_;
};

v1::Model Described(const ModelInfo& info) {
  ServedModel served;
  served.name = "served";
  served.model = std::make_shared<GivenModel>(info);
  RequestLimits limits;
  limits.max_inputs = 33;
  v1::Model model;
  Fill(served, limits, &model);
  return model;
}

// No two fields of one kind are alike.
TEST(ModelAnswerTest, EveryFieldIsThatOfTheModel) {
  ModelInfo info;
  ModelConfig& config = info.config;
  config.model_type = "roberta";
  config.hidden_size = 12;
  config.embedding_size = 13;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.intermediate_size = 15;
  config.max_len_source = MaxLenSource::kTokenizer;
  config.position_scheme = &RotaryPositions();
  config.head = {HeadModule{}};
  config.head.back().out = 16;
  config.pooling = Pooling::kMax;
  config.normalize = true;
  config.prompts = {{"query", "q: "}, {"passage", "p: "}};
  config.default_prompt_name = "passage";
  info.limits.token_rows = 17;
  info.limits.position_rows = 18;
  info.limits.segment_rows = 19;
  info.limits.position_offset = 20;
  info.limits.max_len = 21;
  info.parameters = {.token_table = 22,
                     .position_table = 23,
                     .segment_table = 24,
                     .embedding = 25,
                     .layers = {26, 27},
                     .head = 28,
                     .total = 29};
  info.dtype = "bf16";
  info.device = "a device";
  info.tokenizer = "Unigram";
  info.weights_sha256 = "0123";
  info.fingerprint = "4567";

  v1::Model expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(name: "served"
         architecture: "roberta"
         hidden_size: 12
         num_hidden_layers: 2
         num_attention_heads: 4
         intermediate_size: 15
         max_len: 21
         max_len_source: MAX_LEN_SOURCE_TOKENIZER
         position_offset: 20
         token_table { rows: 17 columns: 13 parameters: 22 }
         position_table { rows: 18 columns: 13 parameters: 23 }
         segment_table { rows: 19 columns: 13 parameters: 24 }
         total_parameters: 29
         embedding_parameters: 25
         layer_parameters: 26
         layer_parameters: 27
         head_parameters: 28
         pooling: POOLING_MAX
         normalize: true
         dtype: "bf16"
         device: "a device"
         tokenizer: "Unigram"
         vocab_size: 259
         weights_sha256: "0123"
         prompts { key: "passage" value: "p: " }
         prompts { key: "query" value: "q: " }
         default_prompt_name: "passage"
         max_inputs_per_request: 33
         dimensions: 16
         position_scheme: "rotary"
         fingerprint: "4567")",
      &expected));
  const v1::Model model = Described(info);
  google::protobuf::util::MessageDifferencer differencer;
  std::string differences;
  differencer.ReportDifferencesToString(&differences);
  EXPECT_TRUE(differencer.Compare(expected, model)) << differences;

  std::vector<const google::protobuf::FieldDescriptor*> set;
  model.GetReflection()->ListFields(model, &set);
  EXPECT_EQ(static_cast<int>(set.size()), model.GetDescriptor()->field_count())
      << "a field of the contract is not tested";
}

TEST(ModelAnswerTest, AModelWithoutSegmentsHasATableWithoutColumns) {
  ModelInfo info;
  info.config.hidden_size = 12;
  const v1::Model model = Described(info);
  EXPECT_EQ(model.segment_table().rows(), 0u);
  EXPECT_EQ(model.segment_table().columns(), 0u);
}

TEST(ModelAnswerTest, EveryPoolingHasItsName) {
  const std::vector<std::pair<Pooling, v1::Pooling>> all = {
      {Pooling::kCls, v1::POOLING_CLS},
      {Pooling::kMean, v1::POOLING_MEAN},
      {Pooling::kMax, v1::POOLING_MAX},
      {Pooling::kMeanSqrtLen, v1::POOLING_MEAN_SQRT_LEN},
      {Pooling::kWeightedMean, v1::POOLING_WEIGHTED_MEAN},
      {Pooling::kLastToken, v1::POOLING_LAST_TOKEN}};
  for (const auto& [pooling, name] : all) {
    ModelInfo info;
    info.config.pooling = pooling;
    EXPECT_EQ(Described(info).pooling(), name) << v1::Pooling_Name(name);
  }
  // The contract's further value leaves the choice to the model.
  EXPECT_EQ(static_cast<int>(all.size()) + 1,
            v1::Pooling_descriptor()->value_count());
}

TEST(ModelAnswerTest, EverySourceOfMaxLenHasItsName) {
  const std::vector<std::pair<MaxLenSource, v1::MaxLenSource>> all = {
      {MaxLenSource::kPositionTable, v1::MAX_LEN_SOURCE_POSITION_TABLE},
      {MaxLenSource::kSentenceTransformers,
       v1::MAX_LEN_SOURCE_SENTENCE_TRANSFORMERS},
      {MaxLenSource::kTokenizer, v1::MAX_LEN_SOURCE_TOKENIZER},
      {MaxLenSource::kFlag, v1::MAX_LEN_SOURCE_FLAG},
      {MaxLenSource::kMaxPositions, v1::MAX_LEN_SOURCE_MAX_POSITIONS}};
  for (const auto& [source, name] : all) {
    ModelInfo info;
    info.config.max_len_source = source;
    EXPECT_EQ(Described(info).max_len_source(), name)
        << v1::MaxLenSource_Name(name);
  }
  EXPECT_EQ(static_cast<int>(all.size()) + 1,
            v1::MaxLenSource_descriptor()->value_count());
}

}  // namespace
}  // namespace encoderd
