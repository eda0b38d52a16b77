// tokenizer_config.json next to tokenizer.json: which of the two applies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/engine/tokenizer/small_tokenizer.h"

namespace encoderd {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kConfig[] = "tokenizer_config.json";

// [UNK] 0, A 1, a 2, \u00c1 3, \u4e2d\u4e2d 4, \u4e2d 5.
class BertOverridesTest : public testing::Test {
 protected:
  std::unique_ptr<const Tokenizer> Load(const char* normalizer,
                                        const char* config) {
    Json json = Json::parse(R"({"added_tokens": [],
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab":
            {"[UNK]": 0, "A": 1, "a": 2, "\u00c1": 3, "\u4e2d\u4e2d": 4,
             "\u4e2d": 5, "\u00e1": 6}}})");
    json["normalizer"] = Json::parse(R"({"type": "BertNormalizer",
        "clean_text": true, "handle_chinese_chars": true,
        "strip_accents": null, "lowercase": true})");
    json["normalizer"].merge_patch(Json::parse(normalizer));
    folder_.Write("tokenizer.json", json.dump());
    folder_.Write(kConfig, config);
    auto tokenizer = Tokenizer::Load(folder_.path());
    EXPECT_THAT(tokenizer, IsOk());
    return *std::move(tokenizer);
  }

  static constexpr char kText[] = "A \u00c1 \u4e2d\u4e2d";
  const TempFolder folder_;
};

TEST_F(BertOverridesTest, LeavesAFileAloneThatSaysTheSame) {
  for (const char* config :
       {"{}", R"({"do_lower_case": true, "strip_accents": null,
                  "tokenize_chinese_chars": true,
                  "tokenizer_class": "BertTokenizer"})"}) {
    const auto tokenizer = Load("{}", config);
    EXPECT_THAT(Ids(*tokenizer, kText), ElementsAre(2, 2, 5, 5));
    EXPECT_THAT(tokenizer->remarks().notes, IsEmpty());
    EXPECT_THAT(tokenizer->remarks().warnings, IsEmpty());
  }
}

TEST_F(BertOverridesTest, TakesTheConfigsSettings) {
  const auto cased = Load("{}", R"({"do_lower_case": false})");
  EXPECT_THAT(Ids(*cased, kText), ElementsAre(1, 3, 5, 5));
  EXPECT_THAT(cased->remarks().notes,
              ElementsAre("tokenizer_config.json: do_lower_case false replaces "
                          "tokenizer.json's lowercase true, as in "
                          "transformers"));
  EXPECT_THAT(Ids(*Load("{}", R"({"do_lower_case": true,
                                  "strip_accents": false})"),
                  kText),
              ElementsAre(2, 6, 5, 5));
  EXPECT_THAT(Ids(*Load("{}", R"({"tokenize_chinese_chars": false})"), kText),
              ElementsAre(2, 2, 4));
  // Unset, accents go with the case.
  EXPECT_THAT(Load(R"({"strip_accents": false})", R"({"do_lower_case": true})")
                  ->remarks()
                  .notes,
              ElementsAre(HasSubstr("strip_accents true replaces")));
  EXPECT_THAT(
      Ids(*Load(R"({"strip_accents": false})", R"({"do_lower_case": true})"),
          kText),
      ElementsAre(2, 2, 5, 5));
}

TEST_F(BertOverridesTest, GivesABertTokenizerANormalizer) {
  Load("{}", "{}");
  std::ifstream file(folder_.Path("tokenizer.json"));
  Json json = Json::parse(file);
  json["normalizer"] = nullptr;
  folder_.Write("tokenizer.json", json.dump());
  TokenizerRemarks remarks;
  const auto ids = [&](const char* config) {
    folder_.Write(kConfig, config);
    const auto tokenizer = Tokenizer::Load(folder_.path());
    EXPECT_THAT(tokenizer, IsOk());
    remarks = (*tokenizer)->remarks();
    return Ids(**tokenizer, kText);
  };
  EXPECT_THAT(ids(R"({"tokenizer_class": "BertTokenizer"})"),
              ElementsAre(1, 3, 4));
  EXPECT_THAT(remarks.warnings,
              ElementsAre("tokenizer.json's normalizer null applies; "
                          "transformers would use BertNormalizer, because "
                          "tokenizer_config.json does not set do_lower_case"));
  EXPECT_THAT(ids(R"({"tokenizer_class": "BertTokenizer",
                      "do_lower_case": true})"),
              ElementsAre(2, 2, 5, 5));
  EXPECT_THAT(ids(R"({"tokenizer_class": "BertTokenizer",
                      "do_lower_case": false})"),
              ElementsAre(1, 3, 5, 5));
  EXPECT_THAT(remarks.notes,
              ElementsAre("tokenizer_config.json: its BertTokenizer normalizes "
                          "texts, which tokenizer.json does not, as in "
                          "transformers"));
  EXPECT_THAT(ids(R"({"tokenizer_class": "PreTrainedTokenizerFast",
                      "do_lower_case": true})"),
              ElementsAre(1, 3, 4));
}

// Of GPT-2: its tokenizers give none, others may.
TEST_F(BertOverridesTest, RefusesSegmentsWhereTheModelAddsTokensForThem) {
  Load("{}", "{}");
  constexpr struct {
    const char* config;
    const char* why;  // nullptr: it is served
  } kCases[] = {
      {R"({"tokenizer_class": "GPT2Tokenizer"})", nullptr},
      {R"({"tokenizer_class": "PreTrainedTokenizerFast"})", nullptr},
      {R"({"tokenizer_class": "BertTokenizerFast"})",
       "tokenizer_config.json: a BertTokenizerFast gives token_type_ids"},
      {R"({"tokenizer_class": "BertTokenizer",
           "model_input_names": ["input_ids", "attention_mask"]})",
       nullptr},
      {R"({"tokenizer_class": "GPT2Tokenizer",
           "model_input_names": ["input_ids", "token_type_ids"]})",
       "tokenizer_config.json: model_input_names has token_type_ids"}};
  for (const auto& [config, why] : kCases) {
    folder_.Write(kConfig, config);
    EXPECT_THAT(Tokenizer::Load(folder_.path()), IsOk()) << config;
    const auto refused =
        Tokenizer::Load(folder_.path(), {.refuse_segments = true});
    if (why == nullptr) {
      EXPECT_THAT(refused, IsOk()) << config;
    } else {
      EXPECT_THAT(refused, IsError(kUnsupported, why)) << config;
    }
  }
}

TEST_F(BertOverridesTest, AsksTheClass) {
  constexpr char kCased[] = R"({"do_lower_case": false, "tokenizer_class": ")";
  for (const char* name :
       {"BertTokenizerFast", "ConvBertTokenizer", "DPRContextEncoderTokenizer",
        "DPRQuestionEncoderTokenizer", "DPRReaderTokenizer",
        "DistilBertTokenizer", "ElectraTokenizerFast", "LayoutLMTokenizer",
        "LxmertTokenizer", "MPNetTokenizer", "MobileBertTokenizer",
        "RetriBertTokenizer", "SqueezeBertTokenizer"}) {
    const std::string config = std::string(kCased) + name + "\"}";
    EXPECT_THAT(Ids(*Load("{}", config.c_str()), kText),
                ElementsAre(1, 3, 5, 5));
  }
  for (const char* name : {"PreTrainedTokenizerFast", "TokenizersBackend"}) {
    const std::string config = std::string(kCased) + name + "\"}";
    EXPECT_THAT(Ids(*Load("{}", config.c_str()), kText),
                ElementsAre(2, 2, 5, 5));
  }
  // config.json names it where this file does not, or its model_type means it.
  folder_.Write("config.json", R"({"tokenizer_class": "TokenizersBackend"})");
  constexpr char kNoClass[] = R"({"do_lower_case": false})";
  EXPECT_THAT(Ids(*Load("{}", kNoClass), kText), ElementsAre(2, 2, 5, 5));
  folder_.Write("config.json", R"({"model_type": "modernbert"})");
  EXPECT_THAT(Ids(*Load("{}", kNoClass), kText), ElementsAre(2, 2, 5, 5));
  folder_.Write("config.json", R"({"model_type": "electra"})");
  EXPECT_THAT(Ids(*Load("{}", kNoClass), kText), ElementsAre(1, 3, 5, 5));
}

// transformers would lowercase: nobody says so, and the file says no.
TEST_F(BertOverridesTest, KeepsTheFileWhereTheConfigIsSilentAndWarns) {
  const auto tokenizer =
      Load(R"({"lowercase": false})", R"({"model_max_length": 512})");
  EXPECT_THAT(Ids(*tokenizer, kText), ElementsAre(1, 3, 5, 5));
  EXPECT_THAT(tokenizer->remarks().notes, IsEmpty());
  EXPECT_THAT(tokenizer->remarks().warnings,
              ElementsAre("tokenizer.json's lowercase false applies; "
                          "transformers would use true, because "
                          "tokenizer_config.json does not set do_lower_case"));
  // What is null is not set.
  EXPECT_THAT(Load(R"({"strip_accents": false})",
                   R"({"do_lower_case": null, "strip_accents": null})")
                  ->remarks()
                  .warnings,
              ElementsAre(HasSubstr("strip_accents false applies")));
}

// Of transformers 5, whose classes ignore these parts of the file.
TEST_F(BertOverridesTest, WarnsOfWhatTheClassSets) {
  Load(R"({"clean_text": false})", "{}");
  std::ifstream file(folder_.Path("tokenizer.json"));
  Json json = Json::parse(file);
  json["model"]["max_input_chars_per_word"] = 5;
  json["model"]["continuing_subword_prefix"] = "";
  folder_.Write("tokenizer.json", json.dump());
  const auto warnings = [&](const char* config, const char* model) {
    folder_.Write(kConfig, config);
    folder_.Write("config.json", model);
    const auto tokenizer = Tokenizer::Load(folder_.path());
    EXPECT_THAT(tokenizer, IsOk());
    return (*tokenizer)->remarks().warnings;
  };
  constexpr char kBert[] = R"({"tokenizer_class": "BertTokenizerFast"})";
  EXPECT_THAT(
      warnings(kBert, R"({"model_type": "bert"})"),
      ElementsAre("tokenizer.json's max_input_chars_per_word 5 applies; "
                  "transformers 5 would use 100, because its BertTokenizer "
                  "ignores that of the file",
                  HasSubstr("continuing_subword_prefix '' applies; "
                            "transformers 5 would use '##'"),
                  HasSubstr("clean_text false applies")));
  EXPECT_THAT(warnings("{}", R"({"model_type": "distilbert"})"),
              testing::SizeIs(3));
  EXPECT_THAT(warnings("{}", "{}"), IsEmpty());
  EXPECT_THAT(warnings(kBert, R"({"model_type": "modernbert"})"), IsEmpty());
  for (const char* name : {"PreTrainedTokenizerFast", "ConvBertTokenizer"}) {
    const Json config = {{"tokenizer_class", name}};
    EXPECT_THAT(warnings(config.dump().c_str(), "{}"), IsEmpty());
  }
}

TEST_F(BertOverridesTest, NotesTheSideThatIsCut) {
  EXPECT_THAT(Load("{}", R"({"truncation_side": "left"})")->remarks().notes,
              ElementsAre(HasSubstr("TRUNCATE_START")));
  EXPECT_THAT(Load("{}", R"({"truncation_side": "right"})")->remarks().notes,
              IsEmpty());
}

TEST_F(BertOverridesTest, NotesATruncationOfTheStart) {
  Load("{}", "{}");
  std::ifstream file(folder_.Path("tokenizer.json"));
  Json json = Json::parse(file);
  json["truncation"] = {{"direction", "Left"}, {"max_length", 8}};
  folder_.Write("tokenizer.json", json.dump());
  const auto tokenizer = Tokenizer::Load(folder_.path());
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT((*tokenizer)->remarks().notes,
              ElementsAre(HasSubstr("its truncation cuts the start")));
}

TEST_F(BertOverridesTest, RefusesWhatWouldChangeIds) {
  Load("{}", "{}");
  folder_.Write(kConfig, R"({"split_special_tokens": true})");
  EXPECT_THAT(Tokenizer::Load(folder_.path()),
              IsError(kUnsupported, "split_special_tokens true"));
  folder_.Write(kConfig, R"({"do_lower_case": 1})");
  EXPECT_THAT(Tokenizer::Load(folder_.path()),
              IsError(absl::StatusCode::kDataLoss, "do_lower_case is 1"));
  folder_.Write(kConfig, "[");
  EXPECT_THAT(Tokenizer::Load(folder_.path()),
              IsError(absl::StatusCode::kDataLoss, kConfig));
}

TEST(ByteLevelOverridesTest, TakesThePrefixSpaceOfRobertaAndGpt2) {
  const TempFolder folder;
  const auto load = [&folder](const char* step, const char* config) {
    // "a" 0, " a" 1 (byte-level: \u0120 for the space).
    Json json = Json::parse(R"({"added_tokens": [], "normalizer": null,
        "post_processor": null, "model": {"type": "BPE", "unk_token": null,
          "vocab": {"a": 0, "\u0120a": 1, "\u0120": 2},
          "merges": ["\u0120 a"]}})");
    json["pre_tokenizer"] = Json::parse(step);
    folder.Write("tokenizer.json", json.dump());
    folder.Write(kConfig, config);
    auto tokenizer = Tokenizer::Load(folder.path());
    EXPECT_THAT(tokenizer, IsOk());
    return *std::move(tokenizer);
  };
  static constexpr char kStep[] = R"({"type": "ByteLevel", "trim_offsets": true,
                               "add_prefix_space": false})";
  const auto ids = [&load](const char* config) {
    return Ids(*load(kStep, config), "a a");
  };
  EXPECT_THAT(ids("{}"), ElementsAre(0, 1));
  EXPECT_THAT(ids(R"({"add_prefix_space": true})"), ElementsAre(1, 1));
  for (const char* name : {"RobertaTokenizerFast", "GPT2Tokenizer",
                           "BartTokenizer", "LongformerTokenizer"}) {
    const Json config = {{"add_prefix_space", true}, {"tokenizer_class", name}};
    EXPECT_THAT(ids(config.dump().c_str()), ElementsAre(1, 1));
  }
  EXPECT_THAT(ids(R"({"add_prefix_space": true,
                      "tokenizer_class": "PreTrainedTokenizerFast"})"),
              ElementsAre(0, 1));
  // Within a sequence; and a file that adds a space where nobody says so.
  EXPECT_THAT(Ids(*load(R"({"type": "Sequence", "pretokenizers": [
                            {"type": "ByteLevel", "trim_offsets": true,
                             "add_prefix_space": false}]})",
                        R"({"add_prefix_space": true})"),
                  "a a"),
              ElementsAre(1, 1));
  const auto silent = load(R"({"type": "ByteLevel", "trim_offsets": true,
                               "add_prefix_space": true})",
                           "{}");
  EXPECT_THAT(Ids(*silent, "a a"), ElementsAre(1, 1));
  EXPECT_THAT(silent->remarks().warnings,
              ElementsAre(HasSubstr("add_prefix_space true applies")));
}

TEST(ByteLevelOverridesTest, WarnsOfWhatTheClassSets) {
  const TempFolder folder;
  folder.Write("tokenizer.json", R"({"added_tokens": [],
      "normalizer": {"type": "Lowercase"}, "post_processor": null,
      "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "WhitespaceSplit"},
        {"type": "ByteLevel", "trim_offsets": true, "use_regex": false,
         "add_prefix_space": false}]},
      "model": {"type": "BPE", "unk_token": null, "ignore_merges": true,
        "vocab": {"a": 0}, "merges": []}})");
  for (const char* name : {"RobertaTokenizer", "GPT2Tokenizer"}) {
    const Json config = {{"tokenizer_class", name}};
    folder.Write(kConfig, config.dump());
    const auto tokenizer = Tokenizer::Load(folder.path());
    ASSERT_THAT(tokenizer, IsOk());
    EXPECT_THAT((*tokenizer)->remarks().warnings,
                ElementsAre(HasSubstr("ignore_merges true applies"),
                            HasSubstr("normalizer applies; transformers 5 "
                                      "would use none, because its "),
                            HasSubstr("pre_tokenizer applies; transformers 5 "
                                      "would use ByteLevel alone"),
                            HasSubstr("use_regex false applies")));
  }
  folder.Write(kConfig, R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
  const auto tokenizer = Tokenizer::Load(folder.path());
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT((*tokenizer)->remarks().warnings, IsEmpty());
}

// Without tokenizer.json, config.json may name the class, too.
TEST(VocabularyClassTest, IsReadFromConfigJson) {
  const TempFolder folder;
  folder.Write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\n");
  folder.Write("config.json",
               R"({"tokenizer_class": "BertJapaneseTokenizer"})");
  EXPECT_THAT(Tokenizer::Load(folder.path()),
              IsError(kUnsupported,
                      "config.json: tokenizer_class 'BertJapaneseTokenizer' is "
                      "not supported without tokenizer.json"));
  folder.Write(kConfig, R"({"tokenizer_class": "BertTokenizer"})");
  EXPECT_THAT(Tokenizer::Load(folder.path()), IsOk());
}

}  // namespace
}  // namespace encoderd
