// sentence_bert_config.json: what is served, and what is refused by name.
#include "engine/checkpoint/transformer_settings.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

using absl::StatusCode::kDataLoss;
using absl::StatusCode::kUnimplemented;

constexpr char kFile[] = "sentence_bert_config.json";

absl::StatusOr<TransformerSettings> Read(const std::string& members) {
  const TempFolder folder;
  folder.Write(kFile, members);
  return ReadTransformerSettings(folder.path(), "");
}

TEST(TransformerSettingsTest, HasDefaultsWithoutAFile) {
  const TempFolder folder;
  const auto settings = ReadTransformerSettings(folder.path(), "");
  ASSERT_THAT(settings, IsOk());
  EXPECT_FALSE(settings->lowercase);
  EXPECT_EQ(settings->max_seq_length, 0);
}

TEST(TransformerSettingsTest, ReadsTheFileNextToTheTransformer) {
  const TempFolder folder;
  folder.Write("0_Transformer/sentence_xlm-roberta_config.json",
               R"({"max_seq_length": 128, "do_lower_case": true})");
  const auto settings = ReadTransformerSettings(folder.path(), "0_Transformer");
  ASSERT_THAT(settings, IsOk());
  EXPECT_TRUE(settings->lowercase);
  EXPECT_EQ(settings->max_seq_length, 128);
}

TEST(TransformerSettingsTest, PassesOverAnEmptyFile) {
  const TempFolder folder;
  folder.Write(kFile, "{}");
  folder.Write("sentence_roberta_config.json", R"({"max_seq_length": 10})");
  const auto settings = ReadTransformerSettings(folder.path(), "");
  ASSERT_THAT(settings, IsOk());
  EXPECT_EQ(settings->max_seq_length, 10);
}

TEST(TransformerSettingsTest, ReadsTheOldNameOfTheLongestLength) {
  const auto length = [](const char* members) {
    const Json json = Json::parse(members);
    return ModelMaxLength(JsonFields(json, "tokenizer_config.json"));
  };
  EXPECT_THAT(length(R"({"max_len": 10})"), IsOk());
  EXPECT_EQ(*length(R"({"max_len": 10})"), 10);
  EXPECT_EQ(*length(R"({"max_len": 10, "model_max_length": 20})"), 20);
  EXPECT_EQ(*length("{}"), 0);
  EXPECT_EQ(*length(R"({"max_len": 10, "model_max_length": null})"), 0);
  EXPECT_THAT(length(R"({"max_len": 0})"), IsError(kDataLoss, "max_len"));
}

// As sentence-transformers 6 writes it, and arguments that make no other model.
TEST(TransformerSettingsTest, ServesWhatChangesNoVector) {
  for (const char* members :
       {R"({"transformer_task": "feature-extraction", "modality_config":
            {"text": {"method": "forward",
                      "method_output_name": "last_hidden_state"}},
            "module_output_name": "token_embeddings"})",
        R"({"model_args": {"attn_implementation": "sdpa", "revision": null,
                           "torch_dtype": "float16"}})",
        R"({"tokenizer_args": {"use_fast": false, "padding_side": "left"}})",
        R"({"config_args": {"use_cache": false, "trust_remote_code": true}})",
        R"({"model_kwargs": {}, "processor_kwargs": {}, "config_kwargs": {},
            "processing_kwargs": {}, "query_length": null,
            "unpad_inputs": true})"}) {
    EXPECT_THAT(Read(members), IsOk()) << members;
  }
}

// It replaces that of tokenizer_config.json, and max_seq_length.
TEST(TransformerSettingsTest, TakesTheLengthThatTheTokenizerIsGiven) {
  const std::pair<const char*, std::optional<int64_t>> lengths[] = {
      {"64", 64}, {"1e30", 0}, {"null", 0}};
  for (const char* arguments : {"tokenizer_args", "processor_kwargs"}) {
    for (const auto& [text, length] : lengths) {
      const auto settings =
          Read(absl::StrCat(R"({"max_seq_length": 32, ")", arguments,
                            R"(": {"model_max_length": )", text, "}}"));
      ASSERT_THAT(settings, IsOk());
      EXPECT_EQ(settings->max_seq_length, 0) << text;
      EXPECT_EQ(settings->model_max_length, length) << text;
    }
  }
  const auto settings = Read(R"({"max_seq_length": 32, "tokenizer_args": {},
                                 "model_args": {"model_max_length": null}})");
  ASSERT_THAT(settings, IsOk());
  EXPECT_EQ(settings->max_seq_length, 32);
  EXPECT_EQ(settings->model_max_length, std::nullopt);
  EXPECT_THAT(Read(R"({"tokenizer_args": {"model_max_length": 0}})"),
              IsError(kDataLoss,
                      "sentence_bert_config.json, tokenizer_args: "
                      "model_max_length is 0; expected a number"));
}

TEST(TransformerSettingsTest, RefusesByNameWhatWouldChangeAVector) {
  const struct {
    const char* members;
    const char* message;  // after the file's name
  } kCases[] = {
      {R"({"model_args": {"variant": "fp16"}})",
       ", model_args: 'variant' is not supported"},
      {R"({"tokenizer_args": {"do_lower_case": false}})",
       ", tokenizer_args: 'do_lower_case' is not supported; set it in "
       "tokenizer_config.json"},
      {R"({"processor_kwargs": {"add_prefix_space": true}})",
       ", processor_kwargs: 'add_prefix_space' is not supported; set it in "
       "tokenizer_config.json"},
      {R"({"tokenizer_args": {"truncation_side": "left"}})",
       ", tokenizer_args: 'truncation_side' is not supported"},
      {R"({"config_kwargs": {"num_hidden_layers": 3}})",
       ", config_kwargs: 'num_hidden_layers' is not supported; set it in "
       "config.json"},
      {R"({"transformer_task": "fill-mask"})",
       ": the transformer_task 'fill-mask' is not supported"},
      {R"({"module_output_name": "sentence_embedding"})",
       ": the module_output_name 'sentence_embedding' is not supported"},
      {R"({"tokenizer_name_or_path": "bert-base-cased"})",
       ": tokenizer_name_or_path 'bert-base-cased' is not supported"},
      {R"({"query_length": 32})", ": query_length 32 is not supported"},
      {R"({"document_length": 32})", ": document_length 32 is not supported"},
      {R"({"query_expansion": {"length": 32}})",
       ": query_expansion an object is not supported"},
      {R"({"processing_kwargs": {"text": {"max_length": 8}}})",
       ": processing_kwargs an object is not supported"},
      {R"({"modality_config": {"text": {"method": "forward",
           "method_output_name": "pooler_output"}}})",
       ": a modality_config in which text is not the last_hidden_state of "
       "forward is not supported"},
      {R"({"modality_config": {"image": {"method": "forward",
           "method_output_name": "last_hidden_state"}}})",
       ": a modality_config in which text is not"},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT(Read(test.members),
                IsError(kUnimplemented, std::string(kFile) + test.message));
  }
}

TEST(TransformerSettingsTest, NamesAMemberOfTheWrongType) {
  EXPECT_THAT(Read(R"({"model_args": "fast"})"),
              IsError(kDataLoss, "model_args is 'fast'; expected an object"));
  EXPECT_THAT(Read(R"({"modality_config": 3})"),
              IsError(kDataLoss, "modality_config is 3; expected an object"));
  EXPECT_THAT(Read(R"({"max_seq_length": 0})"),
              IsError(kDataLoss, "max_seq_length is 0"));
}

}  // namespace
}  // namespace encoderd
