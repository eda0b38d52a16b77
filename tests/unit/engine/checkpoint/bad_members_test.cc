// Every JSON file of a model folder with one wrong member: the error names the
// file, the member and its value.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint_files.h"
#include "engine/checkpoint/model_config.h"
#include "engine/io/json.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

constexpr char kModel[] = "config.json";
constexpr char kModules[] = "modules.json";
constexpr char kPooling[] = "1_Pooling/config.json";
constexpr char kDense[] = "2_Dense/config.json";
constexpr char kLayerNorm[] = "3_LayerNorm/config.json";
constexpr char kNormalize[] = "4_Normalize/config.json";
constexpr char kPrompts[] = "config_sentence_transformers.json";
constexpr char kSentence[] = "sentence_bert_config.json";

class BadMembersTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto& [name, text] : files_) folder_.Write(name, text);
    ASSERT_THAT(Load(), IsOk());
  }

  absl::StatusOr<ModelConfig> Load() const {
    return LoadModelConfig(folder_.path(), 0);
  }

  // With this text as that file, and the right one afterwards.
  absl::Status LoadWith(const std::string& name,
                        const std::string& text) const {
    folder_.Write(name, text);
    const absl::Status status = Load().status();
    folder_.Write(name, files_.at(name));
    return status;
  }

  // The text of the right file, but for these members.
  std::string With(const std::string& name, const std::string& members) const {
    Json json = Json::parse(files_.at(name));
    json.update(Json::parse(members));
    return json.dump();
  }

  const std::map<std::string, std::string> files_ = {
      {kModel, R"({"model_type":"bert","hidden_size":4,
        "num_hidden_layers":1,"num_attention_heads":1,"intermediate_size":4,
        "vocab_size":10,"max_position_embeddings":8})"},
      {kModules, R"([
        {"type":"sentence_transformers.models.Transformer","path":""},
        {"type":"sentence_transformers.models.Pooling","path":"1_Pooling"},
        {"type":"sentence_transformers.models.Dense","path":"2_Dense"},
        {"type":"sentence_transformers.models.LayerNorm",
         "path":"3_LayerNorm"},
        {"type":"sentence_transformers.models.Normalize",
         "path":"4_Normalize"}])"},
      {kPooling, R"({"pooling_mode_mean_tokens":true})"},
      {kDense, R"({"in_features":4,"out_features":4})"},
      {kLayerNorm, R"({"dimension":4})"},
      {kNormalize, "{}"},
      {kPrompts, "{}"},
      {kSentence, "{}"}};
  const TempFolder folder_;
};

TEST_F(BadMembersTest, NamesTheFileTheMemberAndItsValue) {
  const struct {
    const char* file;
    const char* members;
    const char* message;  // after the file's name
  } kCases[] = {
      {kModel, R"({"is_decoder":1})",
       ": is_decoder is 1; expected true or false"},
      {kModel, R"({"position_embedding_type":3})",
       ": position_embedding_type is 3; expected a string"},
      {kModel, R"({"hidden_act":5})", ": hidden_act is 5; expected a string"},
      {kPooling, R"({"pooling_mode_cls_token":1})",
       ": pooling_mode_cls_token is 1; expected true or false"},
      {kPooling, R"({"include_prompt":"yes"})",
       ": include_prompt is 'yes'; expected true or false"},
      {kPooling, R"({"word_embedding_dimension":0})",
       ": word_embedding_dimension is 0; expected a whole number from 1 to "
       "2147483647"},
      {kPooling, R"({"embedding_dimension":"4"})",
       ": embedding_dimension is '4'; expected a whole number from 1 to "
       "2147483647"},
      {kDense, R"({"module_input_name":7})",
       ": module_input_name is 7; expected a string"},
      {kDense, R"({"activation_function":["Tanh"]})",
       ": activation_function is an array; expected a string"},
      {kDense, R"({"use_residual":"no"})",
       ": use_residual is 'no'; expected true or false"},
      {kDense, R"({"in_features":null})",
       ": in_features is null; expected a whole number from 1 to 262144"},
      {kDense, R"({"bias":0})", ": bias is 0; expected true or false"},
      {kLayerNorm, R"({"dimension":0})",
       ": dimension is 0; expected a whole number from 1 to 262144"},
      {kNormalize, R"({"module_input_name":7})",
       ": module_input_name is 7; expected a string"},
      {kPrompts, R"({"model_type":1})", ": model_type is 1; expected a string"},
      {kPrompts, R"({"prompts":{"query":1}})",
       ", prompts: query is 1; expected a string"},
      {kPrompts, R"({"default_prompt_name":["query"]})",
       ": default_prompt_name is an array; expected a string"},
      {kPrompts, R"({"truncate_dim":0})",
       ": truncate_dim is 0; expected a whole number from 1 to 2147483647"},
      {kSentence, R"({"do_lower_case":"no"})",
       ": do_lower_case is 'no'; expected true or false"},
      {kSentence, R"({"transformer_task":2})",
       ": transformer_task is 2; expected a string"},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT(LoadWith(test.file, With(test.file, test.members)),
                IsError(kDataLoss, absl::StrCat(test.file, test.message)));
  }
}

TEST_F(BadMembersTest, RefusesByNameWhatIsNotServed) {
  EXPECT_THAT(
      LoadWith(kNormalize, R"({"module_output_name":"token_embeddings"})"),
      IsError(kUnimplemented,
              "4_Normalize/config.json: module_output_name "
              "'token_embeddings' is not supported"));
  // Vectors that sentence-transformers would cut.
  EXPECT_THAT(LoadWith(kPrompts, R"({"truncate_dim":256})"),
              IsError(kUnimplemented, "truncate_dim 256"));
  EXPECT_THAT(LoadWith(kPrompts, R"({"truncate_dim":null})"), IsOk());
  EXPECT_THAT(LoadWith(kSentence, R"({"transformer_task":"fill-mask"})"),
              IsError(kUnimplemented,
                      "sentence_bert_config.json: the transformer_task "
                      "'fill-mask' is not supported"));
}

TEST_F(BadMembersTest, RefusesAdapters) {
  folder_.Write("adapter_config.json", "{}");
  EXPECT_THAT(Load(),
              IsError(kUnimplemented,
                      "adapter_config.json: adapters are not supported"));
}

TEST_F(BadMembersTest, NamesAFileThatHoldsNoObject) {
  for (const char* name : {kModel, kPooling, kDense, kLayerNorm, kNormalize,
                           kPrompts, kSentence}) {
    EXPECT_THAT(
        LoadWith(name, "[1]"),
        IsError(kDataLoss,
                absl::StrCat(name, " holds an array; expected an object")));
    EXPECT_THAT(LoadWith(name, "{\"a\":"),
                IsError(kDataLoss, absl::StrCat(name, " is not JSON near")));
  }
}

TEST_F(BadMembersTest, NamesTheModuleWhosePathIsNoText) {
  Json modules = Json::parse(files_.at(kModules));
  modules[1]["path"] = 7;
  EXPECT_THAT(LoadWith(kModules, modules.dump()),
              IsError(kDataLoss,
                      "modules.json, module 1: path is 7; expected a string"));
  EXPECT_THAT(LoadWith(kModules, "["),
              IsError(kDataLoss, "modules.json is not JSON near"));
}

TEST_F(BadMembersTest, NamesAnIndexOfWeightsThatHoldsNoObject) {
  constexpr char kIndex[] = "model.safetensors.index.json";
  folder_.Write(kIndex, "[1]");
  EXPECT_THAT(CheckpointFiles::Open(folder_.path(), ""),
              IsError(kDataLoss, absl::StrCat(kIndex,
                                              " holds an array; expected an "
                                              "object")));
  folder_.Write(kIndex, "{\"weight_map\":{");
  EXPECT_THAT(CheckpointFiles::Open(folder_.path(), ""),
              IsError(kDataLoss, absl::StrCat(kIndex, " is not JSON near")));
}

}  // namespace
}  // namespace encoderd
