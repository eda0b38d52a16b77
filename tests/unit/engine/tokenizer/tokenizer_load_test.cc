// Tokenizer::Load: files as they should be, and each way in which they are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "engine/tokenizer/files/tokenizer_spec.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/engine/tokenizer/small_tokenizer.h"

namespace encoderd {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;

Json GoodJson() {
  return Json::parse(R"({
    "version": "1.0", "truncation": {"max_length": 8}, "padding": null,
    "added_tokens": [
      {"id": 1, "content": "[CLS]", "single_word": false, "lstrip": false,
       "rstrip": false, "normalized": false, "special": true},
      {"id": 5, "content": "<new>", "single_word": false, "lstrip": false,
       "rstrip": false, "normalized": false, "special": false}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true,
      "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                 {"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
      "pair": [{"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "[SEP]", "type_id": 1}},
               {"Sequence": {"id": "B", "type_id": 1}}],
      "special_tokens": {
        "[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]},
        "[SEP]": {"id": "[SEP]", "ids": [2, 2], "tokens": ["x", "y"]}}},
    "decoder": null,
    "model": {"type": "WordPiece", "unk_token": "[UNK]",
      "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
      "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "##b": 4}}
  })");
}

TEST(TokenizerLoadTest, SaysWhatToDoWhereAFolderHasNone) {
  TempFolder folder;
  const absl::Status none = Tokenizer::Load(folder.path() + "/").status();
  EXPECT_THAT(none, IsError(absl::StatusCode::kNotFound,
                            "no tokenizer in the folder '" + folder.path() +
                                "': neither tokenizer.json, nor vocab.txt, nor "
                                "merges.txt; fetch the model again"));
  folder.Write("spiece.model", "x");
  EXPECT_THAT(Tokenizer::Load(folder.path()).status(),
              IsError(absl::StatusCode::kNotFound,
                      "nor merges.txt (spiece.model is not read); "));
}

TEST(TokenizerLoadTest, ReadsTokenizerJson) {
  const auto tokenizer = LoadJson(GoodJson());
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Ids(**tokenizer, "\u00c1b<new>"), ElementsAre(1, 3, 4, 5, 2, 2));
  EXPECT_EQ((*tokenizer)->vocab_size(), 6);
  EXPECT_EQ((*tokenizer)->Token(4), "##b");
  EXPECT_EQ((*tokenizer)->Token(5), "<new>");
  EXPECT_EQ((*tokenizer)->Token(6), "");
  EXPECT_EQ((*tokenizer)->Token(-1), "");
  EXPECT_EQ((*tokenizer)->num_special_tokens(false), 3);
  EXPECT_EQ((*tokenizer)->num_special_tokens(true), 2);
  EXPECT_EQ((*tokenizer)->algorithm(), "WordPiece");
  ASSERT_EQ((*tokenizer)->remarks().notes.size(), 1u);
  EXPECT_NE((*tokenizer)->remarks().notes[0].find("truncation"),
            std::string::npos);
}

TEST(TokenizerLoadTest, ReadsASubfolderWhoseLinksLeadToItsModelFolder) {
  const TempFolder folder;
  folder.Write("model/tokenizer.json", GoodJson().dump());
  folder.Write("tokenizer.json", GoodJson().dump());
  const std::string sub = folder.Path("model/0_Transformer");
  const auto load = [&](const char* target) {
    std::filesystem::remove_all(sub);
    std::filesystem::create_directory(sub);
    std::filesystem::create_symlink(target, sub + "/tokenizer.json");
    return Tokenizer::Load(folder.Path("model"),
                           {.subfolder = "0_Transformer"});
  };
  EXPECT_THAT(load("../tokenizer.json"), IsOk());
  EXPECT_THAT(load("../../tokenizer.json"),
              IsError(absl::StatusCode::kDataLoss,
                      "file 'tokenizer.json' leads out of its folder"));
}

TEST(TokenizerLoadTest, KnowsWhichTokensStandForNoText) {
  const auto tokenizer = LoadJson(GoodJson());
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_TRUE((*tokenizer)->is_special(1));   // "special": true
  EXPECT_FALSE((*tokenizer)->is_special(5));  // "special": false
  for (const int32_t id : {-1, 0, 3, 6}) {
    EXPECT_FALSE((*tokenizer)->is_special(id));
  }
  TempFolder folder;
  folder.Write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
  const auto from_vocab = Tokenizer::Load(folder.path());
  ASSERT_THAT(from_vocab, IsOk());
  for (const int32_t id : {0, 1, 2, 3}) {
    EXPECT_TRUE((*from_vocab)->is_special(id));
  }
  EXPECT_FALSE((*from_vocab)->is_special(4));
}

TEST(TokenizerLoadTest, ReadsBertProcessing) {
  Json json = GoodJson();
  json["post_processor"] = {
      {"type", "BertProcessing"}, {"sep", {"[SEP]", 2}}, {"cls", {"[CLS]", 1}}};
  const auto tokenizer = LoadJson(json);
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Ids(**tokenizer, "a"), ElementsAre(1, 3, 2));
  EXPECT_EQ((*tokenizer)->num_special_tokens(true), 3);
}

TEST(TokenizerLoadTest, RefusesUnsupportedComponentsByName) {
  const auto with = [](const char* part, const char* type) {
    Json json = GoodJson();
    json[part]["type"] = type;
    return LoadJson(json).status();
  };
  EXPECT_THAT(with("normalizer", "Nmt"),
              IsError(kUnsupported, "normalizer 'Nmt'"));
  EXPECT_THAT(with("pre_tokenizer", "Digits"),
              IsError(kUnsupported, "pre_tokenizer 'Digits'"));
  EXPECT_THAT(with("post_processor", "Other"),
              IsError(kUnsupported, "post_processor 'Other'"));
  EXPECT_THAT(with("model", "WordLevel"),
              IsError(kUnsupported, "model 'WordLevel'"));
}

TEST(TokenizerLoadTest, RefusesIdsThatAreNotDense) {
  Json json = GoodJson();
  json["model"]["vocab"]["a"] = 9;
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "= 9 must be a unique id"));
  json["model"]["vocab"]["a"] = 2;
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "= 2 must be a unique id"));
  json["model"]["vocab"]["a"] = -1;
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "= -1 must be a unique id"));
  json["model"]["vocab"]["a"] = "3";
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "a unique id"));
}

TEST(TokenizerLoadTest, RefusesAddedTokensWithOtherIds) {
  Json json = GoodJson();
  json["added_tokens"][0]["id"] = 2;
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "added_tokens[0].id = 2"));
  json = GoodJson();
  json["added_tokens"][1]["id"] = 7;
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "added_tokens[1].id = 7"));
  json["added_tokens"][1].erase("lstrip");
  json["added_tokens"][1]["id"] = 5;
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "lstrip"));
}

TEST(TokenizerLoadTest, RefusesAddedTokensThatMatchTheSame) {
  Json json = GoodJson();
  const Json token = json["added_tokens"][1];
  json["added_tokens"].push_back(token);
  json["added_tokens"][2]["content"] = "<NEW>";
  json["added_tokens"][2]["id"] = 6;
  EXPECT_THAT(LoadJson(json), IsOk());
  // Both are looked for in lower case now.
  json["added_tokens"][1]["normalized"] = true;
  json["added_tokens"][2]["normalized"] = true;
  EXPECT_THAT(LoadJson(json),
              IsError(kLoss, "added tokens 5 and 6 both match \"<new>\""));
}

TEST(TokenizerLoadTest, RefusesBadTemplates) {
  Json json = GoodJson();
  json["post_processor"]["single"][0]["SpecialToken"]["id"] = "[NONE]";
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "[NONE]"));
  json = GoodJson();
  json["post_processor"]["special_tokens"]["[CLS]"]["ids"] = {77};
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "token id 77"));
  json = GoodJson();
  json["post_processor"]["single"].erase(1);
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "exactly once"));
  json = GoodJson();
  json["post_processor"]["single"] = "A";
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "single must be an array"));
}

TEST(TokenizerLoadTest, RefusesAModelWithoutItsUnknownToken) {
  Json json = GoodJson();
  json["model"]["unk_token"] = "<unk>";
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "lacks the unknown token"));
  json.erase("model");
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "model must be an object"));
}

TEST(TokenizerLoadTest, ReadsVocabularyAndConfig) {
  TempFolder folder;
  folder.Write("vocab.txt", "[PAD]\r\n<u>\n[CLS]\n<s>\na\n##B\nA");
  folder.Write("tokenizer_config.json",
               R"({"do_lower_case": false, "unk_token": "<u>",
                   "sep_token": {"content": "<s>"}, "model_max_length": 512,
                   "tokenizer_class": "BertTokenizer"})");
  const auto tokenizer = Tokenizer::Load(folder.path());
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Ids(**tokenizer, "aB AB <s>[PAD]z"),
              ElementsAre(2, 4, 5, 6, 5, 3, 0, 1, 3));
}

// As `tokenizers` reads the file. U+200B is not white space.
// As in transformers, whose models then get no token_type_ids.
TEST(TokenizerLoadTest, SegmentsThatTheConfigLeavesOutAreZero) {
  for (const bool is_json : {true, false}) {
    for (const bool given : {true, false}) {
      TempFolder folder;
      if (is_json) {
        folder.Write("tokenizer.json", GoodJson().dump());
      } else {
        folder.Write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
      }
      folder.Write("tokenizer_config.json",
                   given ? R"({"model_input_names": ["token_type_ids"]})"
                         : R"({"model_input_names": ["input_ids"]})");
      const auto tokenizer = Tokenizer::Load(folder.path());
      ASSERT_THAT(tokenizer, IsOk());
      const TokenizerScratchPtr scratch = (*tokenizer)->NewScratch();
      Encoding pair;
      ASSERT_THAT((*tokenizer)->EncodePair("a", "a", {}, scratch.get(), &pair),
                  IsOk());
      EXPECT_EQ(pair.segment_ids.back(), given ? 1 : 0);
      const std::string notes =
          absl::StrJoin((*tokenizer)->remarks().notes, "; ");
      EXPECT_EQ(absl::StrContains(notes, "all segment ids are 0"), !given);
    }
  }
  TempFolder folder;
  folder.Write("tokenizer.json", GoodJson().dump());
  folder.Write("tokenizer_config.json", R"({"model_input_names": 3})");
  EXPECT_THAT(Tokenizer::Load(folder.path()),
              IsError(kLoss, "model_input_names is 3; expected an array"));
}

TEST(TokenizerLoadTest, VocabularyAloneMeansBertWithLowerCase) {
  TempFolder folder;
  folder.Write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\n");
  const auto tokenizer = Tokenizer::Load(folder.path());
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Ids(**tokenizer, "\u00c1"), ElementsAre(1, 3, 2));
}

// What sentence-transformers' do_lower_case adds to a normalizer.
TEST(TokenizerLoadTest, LowercasesTextsIfToldTo) {
  TempFolder folder;
  const auto load = [&folder](const Json& normalizer) {
    Json json = GoodJson();
    json["normalizer"] = normalizer;
    folder.Write("tokenizer.json", json.dump());
    auto tokenizer = Tokenizer::Load(folder.path(), {.lowercase = true});
    EXPECT_THAT(tokenizer, IsOk());
    return *std::move(tokenizer);
  };
  Json bert = GoodJson()["normalizer"];
  const auto uncased = load(bert);
  EXPECT_THAT(Ids(*uncased, "A \u00c1 AB"), ElementsAre(1, 3, 3, 3, 4, 2, 2));
  EXPECT_EQ(uncased->remarks().notes.size(), 1u);  // of its truncation
  bert["lowercase"] = false;
  const auto cased = load(bert);
  // It keeps accents.
  EXPECT_THAT(Ids(*cased, "A \u00c1 AB"), ElementsAre(1, 3, 0, 3, 4, 2, 2));
  EXPECT_THAT(cased->remarks().notes,
              testing::Contains(testing::HasSubstr("do_lower_case")));
  EXPECT_THAT(Ids(*load(nullptr), "A \u00c1 AB"),
              ElementsAre(1, 3, 0, 3, 4, 2, 2));
}

TEST(TokenizerLoadTest, RefusesConfigsThatWouldChangeIds) {
  const auto with = [](const std::string& config) {
    TempFolder folder;
    folder.Write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\n");
    folder.Write("tokenizer_config.json", config);
    return Tokenizer::Load(folder.path()).status();
  };
  EXPECT_THAT(with(R"({"tokenizer_class": "MPNetTokenizer"})"),
              IsError(kUnsupported, "MPNetTokenizer"));
  EXPECT_THAT(with(R"({"do_basic_tokenize": false})"),
              IsError(kUnsupported, "do_basic_tokenize"));
  EXPECT_THAT(with(R"({"never_split": ["x"]})"),
              IsError(kUnsupported, "never_split"));
  EXPECT_THAT(with(R"({"word_tokenizer_type": "mecab"})"),
              IsError(kUnsupported, "word_tokenizer_type 'mecab'"));
  EXPECT_THAT(with(R"({"subword_tokenizer_type": "character"})"),
              IsError(kUnsupported, "subword_tokenizer_type 'character'"));
  EXPECT_TRUE(with(R"({"word_tokenizer_type": "basic"})").ok());
  EXPECT_THAT(with(R"({"added_tokens_decoder": {"9": {"content": "<x>"}}})"),
              IsError(kUnsupported, "added_tokens_decoder"));
  for (const std::string decoder : {"[1]", "5", R"("x")", "true", "[]"}) {
    EXPECT_THAT(with(R"({"added_tokens_decoder": )" + decoder + "}"),
                IsError(kLoss, "added_tokens_decoder"));
  }
  EXPECT_THAT(with(R"({"cls_token": "<c>"})"),
              IsError(kLoss, "lacks the cls_token"));
}

TEST(TokenizerLoadTest, RefusesFoldersWithoutATokenizer) {
  TempFolder folder;
  EXPECT_THAT(Tokenizer::Load(folder.path()),
              IsError(absl::StatusCode::kNotFound, "vocab.txt"));
  folder.Write("tokenizer.json", "{\"model\": ");
  EXPECT_THAT(Tokenizer::Load(folder.path()), IsError(kLoss, "tokenizer.json"));
}

// Every member of a document, in turn, replaced by a value of every type.
void ForEachMutation(const Json& good,
                     const std::function<void(const Json&)>& use) {
  const Json others = Json::parse(
      R"([null, true, 5, -1, 1e300, "x", [], [1], [[]], {}, {"x": 1}])");
  std::vector<Json::json_pointer> places = {Json::json_pointer()};
  for (size_t i = 0; i < places.size(); ++i) {
    const Json::json_pointer place = places[i];
    const Json& value = good.at(place);
    if (value.is_object()) {
      for (const auto& item : value.items()) {
        places.push_back(place / item.key());
      }
    }
    for (size_t k = 0; value.is_array() && k < value.size(); ++k) {
      places.push_back(place / k);
    }
    if (i == 0) continue;  // the document itself stays
    for (const Json& other : others) {
      Json mutated = good;
      mutated[place] = other;
      use(mutated);
    }
  }
}

TEST(TokenizerLoadTest, AMemberOfAnyTypeIsReadOrRefusedAndNeverThrows) {
  TempFolder folder;
  folder.Write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
  int loads = 0;
  ForEachMutation(GoodJson(), [&](const Json& json) {
    folder.Write("tokenizer.json", json.dump());
    EXPECT_NO_THROW(static_cast<void>(ReadTokenizerJson(folder.path())))
        << json;
    ++loads;
  });
  const Json config = Json::parse(R"({
    "tokenizer_class": "BertTokenizer", "do_basic_tokenize": true,
    "never_split": [], "do_lower_case": true, "strip_accents": null,
    "tokenize_chinese_chars": true, "model_max_length": 8,
    "cls_token": {"content": "[CLS]"}, "sep_token": "[SEP]",
    "added_tokens_decoder": {"1": {"content": "[UNK]", "special": true}}})");
  ForEachMutation(config, [&](const Json& json) {
    folder.Write("tokenizer_config.json", json.dump());
    EXPECT_NO_THROW(static_cast<void>(ReadVocabulary(folder.path()))) << json;
    ++loads;
  });
  EXPECT_GT(loads, 600);
}

}  // namespace
}  // namespace encoderd
