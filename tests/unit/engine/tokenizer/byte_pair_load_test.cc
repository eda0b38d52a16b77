// Tokenizer::Load of byte-level BPE: files as they should be, and each way in
// which they are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
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
    "version": "1.0",
    "added_tokens": [
      {"id": 0, "content": "<s>", "single_word": false, "lstrip": false,
       "rstrip": false, "normalized": true, "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false,
                      "trim_offsets": true, "use_regex": true},
    "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 1],
                       "cls": ["<s>", 0], "trim_offsets": true,
                       "add_prefix_space": false},
    "model": {"type": "BPE", "dropout": null, "unk_token": null,
      "continuing_subword_prefix": "", "end_of_word_suffix": "",
      "fuse_unk": false, "byte_fallback": false,
      "vocab": {"<s>": 0, "</s>": 1, "a": 2, "b": 3, "ab": 4, "\u0120": 5},
      "merges": ["a b"]}
  })");
}

TEST(BytePairLoadTest, ReadsMergesOfEitherForm) {
  Json json = GoodJson();
  auto tokenizer = LoadJson(json);
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_EQ((*tokenizer)->algorithm(), "BPE");
  EXPECT_THAT(Ids(**tokenizer, "ab a<s>"), ElementsAre(0, 4, 5, 2, 0, 1));
  json["model"]["merges"] = Json::parse(R"([["a", "b"]])");
  tokenizer = LoadJson(json);
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Ids(**tokenizer, "ab"), ElementsAre(0, 4, 1));
}

TEST(BytePairLoadTest, KnowsAModelThatDoesNotSayItsTypeByItsKeys) {
  Json json = GoodJson();
  json["model"].erase("type");
  auto tokenizer = LoadJson(json);
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_EQ((*tokenizer)->algorithm(), "BPE");
  EXPECT_THAT(Ids(**tokenizer, "ab"), ElementsAre(0, 4, 1));
  json["model"].erase("merges");
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "model: type is missing"));

  json["pre_tokenizer"] = nullptr;
  json["post_processor"] = nullptr;
  json["added_tokens"] = Json::array();
  json["model"] = {{"vocab", Json::parse(R"([["a", -1.0], ["b", -2.0]])")},
                   {"unk_id", 0}};
  tokenizer = LoadJson(json);
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_EQ((*tokenizer)->algorithm(), "Unigram");

  json["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  json["model"] = {{"vocab", {{"a", 0}, {"##b", 1}}},
                   {"unk_token", "a"},
                   {"continuing_subword_prefix", "##"},
                   {"max_input_chars_per_word", 100}};
  tokenizer = LoadJson(json);
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_EQ((*tokenizer)->algorithm(), "WordPiece");
  // Whole words alone are another model, which is not served.
  json["model"].erase("max_input_chars_per_word");
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "model: type is missing"));
}

TEST(BytePairLoadTest, RefusesMergesThatCannotBe) {
  const auto with = [](const char* merges) {
    Json json = GoodJson();
    json["model"]["merges"] = Json::parse(merges);
    return LoadJson(json).status();
  };
  EXPECT_THAT(
      with(R"(["a b", "x b"])"),
      IsError(kLoss, "merges[1] names 'x', which the vocabulary lacks"));
  EXPECT_THAT(
      with(R"(["b a"])"),
      IsError(kLoss, "merges[0] makes 'ba', which the vocabulary lacks"));
  for (const char* merge : {"ab", "a  b", "", " "}) {
    EXPECT_THAT(with(Json({merge}).dump().c_str()), IsError(kLoss, "merges[0]"))
        << merge;
  }
  EXPECT_THAT(with(R"(["ab"])"), IsError(kLoss, "two entries and one space"));
  EXPECT_THAT(with(R"([["a", 7]])"), IsError(kLoss, "merges[0] ="));
  EXPECT_THAT(with(R"([["a", "b", "c"]])"), IsError(kLoss, "merges[0] ="));
  EXPECT_THAT(with("[7]"), IsError(kLoss, "merges[0] = 7"));
  EXPECT_THAT(with("7"), IsError(kLoss, "merges must be an array"));
}

TEST(BytePairLoadTest, RefusesByNameWhatWouldChangeIds) {
  const auto with = [](const char* key, const Json& value) {
    Json json = GoodJson();
    json["model"][key] = value;
    return LoadJson(json).status();
  };
  EXPECT_THAT(with("dropout", 0.1), IsError(kUnsupported, "dropout '0.1'"));
  EXPECT_THAT(with("dropout", 0), IsOk());
  EXPECT_THAT(with("byte_fallback", true),
              IsError(kUnsupported, "byte_fallback"));
  EXPECT_THAT(with("end_of_word_suffix", "</w>"),
              IsError(kUnsupported, "end_of_word_suffix '</w>'"));
  EXPECT_THAT(with("continuing_subword_prefix", "##"),
              IsError(kUnsupported, "continuing_subword_prefix"));
  EXPECT_THAT(with("unk_token", "<unk>"), IsError(kLoss, "<unk>"));
  EXPECT_THAT(with("ignore_merges", "yes"), IsError(kLoss, "ignore_merges"));
  EXPECT_THAT(with("dropout", 2),
              IsError(kLoss,
                      "tokenizer.json: model: dropout is 2; expected a number "
                      "from 0 to 1"));
  EXPECT_THAT(with("byte_fallback", 1),
              IsError(kLoss,
                      "tokenizer.json: model: byte_fallback is 1; expected "
                      "true or false"));
  for (const std::string key :
       {"continuing_subword_prefix", "end_of_word_suffix", "unk_token"}) {
    EXPECT_THAT(with(key.c_str(), 7),
                IsError(kLoss, absl::StrCat("tokenizer.json: model: ", key,
                                            " is 7; expected a string")));
  }
  EXPECT_THAT(with("fuse_unk", "yes"),
              IsError(kLoss,
                      "tokenizer.json: model: fuse_unk is 'yes'; expected "
                      "true or false"));
  EXPECT_THAT(with("vocab", {{"a", 0}, {"b", 0}}),
              IsError(kLoss, "a unique id"));
  Json json = GoodJson();
  json["pre_tokenizer"] = nullptr;
  EXPECT_THAT(LoadJson(json), IsError(kUnsupported, "BPE without"));
}

// As in `tokenizers`.
TEST(BytePairLoadTest, OfAnAddedTokenThatIsGivenTwiceTheLastEntryCounts) {
  Json json = GoodJson();
  const auto ids = [&] {
    const auto tokenizer = LoadJson(json);
    EXPECT_THAT(tokenizer, IsOk());
    return Ids(**tokenizer, "a<s>a");
  };
  const Json first = json["added_tokens"][0];
  json["added_tokens"].push_back(first);
  EXPECT_THAT(ids(), ElementsAre(0, 2, 0, 2, 1));
  Json other = first;
  other["single_word"] = true;
  other["normalized"] = false;
  json["added_tokens"].push_back(other);
  EXPECT_THAT(ids(), ElementsAre(0, 2, 2, 1));
  json["added_tokens"].push_back(first);
  EXPECT_THAT(ids(), ElementsAre(0, 2, 0, 2, 1));

  for (const int id : {6, 7, 6}) {
    other["id"] = id;
    other["content"] = id == 6 ? "<6>" : "<7>";
    json["added_tokens"].push_back(other);
  }
  const auto tokenizer = LoadJson(json);
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_EQ((*tokenizer)->vocab_size(), 8);
  EXPECT_EQ((*tokenizer)->Token(7), "<7>");
}

TEST(BytePairLoadTest, ReadsPostProcessorsInSequence) {
  Json json = GoodJson();
  const Json roberta = json["post_processor"];
  const Json trim = {{"type", "ByteLevel"},
                     {"add_prefix_space", true},
                     {"trim_offsets", true}};
  const Json bert = {
      {"type", "BertProcessing"}, {"sep", {"</s>", 1}}, {"cls", {"<s>", 0}}};
  const auto with = [&json](const Json& processors) {
    json["post_processor"] = {{"type", "Sequence"}, {"processors", processors}};
    return LoadJson(json).status();
  };
  EXPECT_THAT(with({trim, bert}), IsOk());
  EXPECT_THAT(with(Json::array()), IsOk());
  EXPECT_THAT(with({bert, trim}),
              IsError(kUnsupported, "ByteLevel after another"));
  EXPECT_THAT(with({trim, roberta}),
              IsError(kUnsupported, "RobertaProcessing after another"));
  EXPECT_THAT(with(Json(std::vector<Json>(40, trim))),
              IsError(kLoss, "at most 32"));
  EXPECT_THAT(with(7), IsError(kLoss, "processors must be an array"));
  json["post_processor"] = roberta;
  json["post_processor"]["sep"] = {"</s>", 99};
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "token id 99"));
  json["post_processor"]["sep"] = "</s>";
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "post_processor.sep"));
}

class MergesFileTest : public ::testing::Test {
 protected:
  MergesFileTest() {
    folder_.Write("vocab.json", R"({"<s>": 0, "</s>": 1, "a": 2, "b": 3,
        "ab": 4, "\u0120": 5, "<mask>": 6})");
    folder_.Write("merges.txt", "#version: 0.2\na b\n");
  }
  absl::StatusOr<std::unique_ptr<const Tokenizer>> Load() const {
    return Tokenizer::Load(folder_.path());
  }
  TempFolder folder_;
};

TEST_F(MergesFileTest, ReadsVocabularyAndMerges) {
  auto tokenizer = Load();
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Ids(**tokenizer, "ab <mask>"), ElementsAre(0, 4, 5, 6, 1));
  EXPECT_TRUE((*tokenizer)->is_special(6));
  folder_.Write("tokenizer_config.json",
                R"({"add_prefix_space": true, "mask_token":
                    {"content": "<mask>", "lstrip": true}})");
  tokenizer = Load();
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Ids(**tokenizer, "ab <mask>"), ElementsAre(0, 5, 4, 6, 1));
}

TEST_F(MergesFileTest, NamesTheLineAtFault) {
  folder_.Write("merges.txt", "#version: 0.2\r\na b\r\na x\r\n");
  EXPECT_THAT(Load(), IsError(kLoss, "merges.txt line 3 names 'x'"));
  folder_.Write("merges.txt", "a b\n\n");
  EXPECT_THAT(Load(), IsError(kLoss, "merges.txt line 2 is ''"));
}

TEST_F(MergesFileTest, RefusesConfigsThatWouldChangeIds) {
  folder_.Write("tokenizer_config.json",
                R"({"tokenizer_class": "WhisperTokenizer"})");
  EXPECT_THAT(Load(), IsError(kUnsupported, "WhisperTokenizer"));
  folder_.Write("tokenizer_config.json", R"({"cls_token": "[CLS]"})");
  EXPECT_THAT(Load(), IsError(kLoss, "vocab.json lacks the cls_token '[CLS]'"));
  folder_.Write("tokenizer_config.json",
                R"({"added_tokens_decoder": {"9": {"content": "<x>"}}})");
  EXPECT_THAT(Load(), IsError(kUnsupported, "added_tokens_decoder"));
}

TEST_F(MergesFileTest, RefusesSettingsOfAnotherTypeByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", " holds an array; expected an object"},
      {R"({"tokenizer_class": 7})",
       ": tokenizer_class is 7; expected a string"},
      {R"({"add_prefix_space": 1})",
       ": add_prefix_space is 1; expected true or false"},
      {R"({"trim_offsets": 1})", ": trim_offsets is 1; expected true or false"},
      {R"({"unk_token": 7})", ": unk_token is 7; expected a string"},
      {R"({"mask_token": {"content": "<mask>", "lstrip": 1}})",
       ": mask_token: lstrip is 1; expected true or false"},
      {R"({"tokenizer_class": "GPT2Tokenizer", "add_bos_token": 1})",
       ": add_bos_token is 1; expected true or false"}};
  for (const auto& [config, error] : cases) {
    folder_.Write("tokenizer_config.json", config);
    EXPECT_THAT(Load(),
                IsError(kLoss, absl::StrCat("tokenizer_config.json", error)))
        << config;
  }
}

// Id 7 is GPT-2's only own token; no token stands around the text.
TEST_F(MergesFileTest, ReadsGpt2sFilesByClassOrVocabulary) {
  const std::string entries =
      R"("!": 0, "\u0120a": 1, "a": 2, "b": 3, "ab": 4, "\u0120": 5, "x": 6)";
  const std::string end = R"(, "<|endoftext|>": 7)";
  folder_.Write("vocab.json", absl::StrCat("{", entries, end, "}"));
  for (const char* config :
       {R"({"tokenizer_class": "GPT2Tokenizer"})",
        R"({"tokenizer_class": "GPT2TokenizerFast", "add_bos_token": false})",
        R"({"model_max_length": 1024})"}) {
    folder_.Write("tokenizer_config.json", config);
    const auto tokenizer = Load();
    ASSERT_THAT(tokenizer, IsOk()) << config;
    EXPECT_THAT(Ids(**tokenizer, "ab<|endoftext|> a"), ElementsAre(4, 7, 5, 2));
    EXPECT_TRUE((*tokenizer)->is_special(7));
    EXPECT_EQ((*tokenizer)->num_special_tokens(false), 0);
  }
  // RoBERTa's vocabulary may hold that token too.
  folder_.Write("vocab.json",
                absl::StrCat("{", entries, end, R"(, "<s>": 8, "</s>": 9})"));
  const auto roberta = Load();
  ASSERT_THAT(roberta, IsOk());
  EXPECT_THAT(Ids(**roberta, "ab"), ElementsAre(8, 4, 9));
}

TEST_F(MergesFileTest, RefusesGpt2sFilesThatAddTokens) {
  for (const char* key : {"add_bos_token", "add_eos_token"}) {
    folder_.Write("tokenizer_config.json",
                  absl::StrCat(R"({"tokenizer_class": "GPT2Tokenizer", ")", key,
                               R"(": true})"));
    EXPECT_THAT(Load(),
                IsError(kUnsupported, absl::StrCat(key, " true next to")));
  }
}

TEST_F(MergesFileTest, BothFilesAreNeeded) {
  TempFolder folder;
  folder.Write("merges.txt", "a b\n");
  EXPECT_THAT(Tokenizer::Load(folder.path()),
              IsError(absl::StatusCode::kNotFound, "vocab.json"));
  folder_.Write("merges.txt", "");
  EXPECT_THAT(Load(), IsError(kLoss, "file 'merges.txt' is empty"));
}

}  // namespace
}  // namespace encoderd
