// Tokenizer::Load of Unigram and of the steps before it: files as they should
// be, and each way in which they are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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
    "version": "1.0", "added_tokens": [],
    "normalizer": {"type": "Sequence", "normalizers": [
      {"type": "Lowercase"},
      {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
    "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581",
                      "prepend_scheme": "always", "split": true},
    "post_processor": null,
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0],
      ["\u2581a", -1.5], ["b", -2], ["\u2581", -3]]}
  })");
}

TEST(UnigramLoadTest, LowercasesTextsIfToldTo) {
  TempFolder folder;
  Json json = GoodJson();
  for (const bool has_step : {true, false}) {
    if (!has_step) json["normalizer"] = nullptr;
    folder.Write("tokenizer.json", json.dump());
    const auto tokenizer = Tokenizer::Load(folder.path(), {.lowercase = true});
    ASSERT_THAT(tokenizer, IsOk());
    EXPECT_THAT(Ids(**tokenizer, "AB"), ElementsAre(1, 2));
    EXPECT_EQ((*tokenizer)->remarks().notes.size(), has_step ? 0u : 1u);
  }
}

// As sentence-transformers, which looks for a Lowercase no deeper than among
// the steps of the outermost sequence.
TEST(UnigramLoadTest, LowercasesFirstWhereALowercaseIsInAnInnerSequence) {
  const auto sequence = [](Json steps) {
    return Json{{"type", "Sequence"}, {"normalizers", std::move(steps)}};
  };
  const Json lower = {{"type", "Lowercase"}};
  const Json replace = {
      {"type", "Replace"}, {"pattern", {{"String", "A"}}}, {"content", "bb"}};
  TempFolder folder;
  const auto ids = [&](const Json& normalizer) {
    Json json = GoodJson();
    json["normalizer"] = normalizer;
    folder.Write("tokenizer.json", json.dump());
    const auto tokenizer = Tokenizer::Load(folder.path(), {.lowercase = true});
    EXPECT_THAT(tokenizer, IsOk());
    return Ids(**tokenizer, "AB");
  };
  EXPECT_THAT(ids(sequence({replace, lower})), ElementsAre(3, 2, 2, 2));
  EXPECT_THAT(ids(sequence({replace, sequence({lower})})), ElementsAre(1, 2));
  EXPECT_THAT(ids(sequence({sequence({replace, lower})})), ElementsAre(1, 2));
  EXPECT_THAT(ids(lower), ElementsAre(1, 2));
}

// tokenizers 0.23 trims by the token's entry, here "<0xE3>", not by its text.
TEST(UnigramLoadTest, BytesOfASpaceKeepTheirPlace) {
  Json json = GoodJson();
  json["normalizer"] = nullptr;
  json["pre_tokenizer"] = nullptr;
  json["post_processor"] = {{"type", "ByteLevel"},
                            {"add_prefix_space", false},
                            {"trim_offsets", true}};
  Json& vocab = json["model"]["vocab"];
  for (int byte = 0; byte < 256; ++byte) {
    vocab.push_back({absl::StrFormat("<0x%02X>", byte), -9});
  }
  json["model"]["byte_fallback"] = true;
  const auto tokenizer = LoadJson(json);
  ASSERT_THAT(tokenizer, IsOk());
  const TokenizerScratchPtr scratch = (*tokenizer)->NewScratch();
  Encoding encoding;
  ASSERT_THAT(
      (*tokenizer)
          ->Encode("b\u3000b", {.offsets = true}, scratch.get(), &encoding),
      IsOk());
  ASSERT_EQ(encoding.offsets.size(), 5u);
  for (int i = 1; i < 4; ++i) {
    EXPECT_EQ(encoding.offsets[i].begin, 1) << i;
    EXPECT_EQ(encoding.offsets[i].end, 4) << i;
  }
}

TEST(UnigramLoadTest, ReadsUnigramAndWhatComesBeforeIt) {
  const auto tokenizer = LoadJson(GoodJson());
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_EQ((*tokenizer)->algorithm(), "Unigram");
  EXPECT_THAT(Ids(**tokenizer, "AB   ab"), ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(Ids(**tokenizer, "c"), ElementsAre(3, 0));
  EXPECT_THAT(Ids(**tokenizer, ""), ElementsAre());
}

// Older files of camembert have <unk> twice. As in the reference, its last id
// and score count; the unknown token is that of unk_id.
TEST(UnigramLoadTest, TakesTheLastOfEqualEntries) {
  Json json = GoodJson();
  json["model"]["vocab"] = Json::parse(
      R"([["<unk>", 0], ["\u2581a", -9], ["\u2581", -3], ["<unk>", 0],
          ["\u2581a", -1.5], ["b", -2]])");
  Json token = Json::parse(R"({"id": 0, "content": "<unk>",
      "single_word": false, "lstrip": false, "rstrip": false,
      "normalized": false, "special": true})");
  for (const int id : {0, 3}) {
    token["id"] = id;
    json["added_tokens"] = Json::array({token});
    const auto tokenizer = LoadJson(json);
    ASSERT_THAT(tokenizer, IsOk());
    EXPECT_THAT(Ids(**tokenizer, "ab c"), ElementsAre(4, 5, 2, 0));
    EXPECT_THAT(Ids(**tokenizer, "ab<unk>"), ElementsAre(4, 5, 3));
  }
  token["id"] = 4;
  json["added_tokens"] = Json::array({token});
  EXPECT_THAT(LoadJson(json), IsError(kLoss, "added_tokens[0].id = 4"));
}

// An added token that the model's table has no row for.
TEST(UnigramLoadTest, DropsAddedTokensWithoutARow) {
  TempFolder folder;
  Json json = GoodJson();
  json["added_tokens"] = Json::parse(R"([{"id": 4, "content": "bb",
      "single_word": false, "lstrip": false, "rstrip": false,
      "normalized": false, "special": true}])");
  folder.Write("tokenizer.json", json.dump());
  const auto load = [&folder](int32_t rows) {
    auto tokenizer = Tokenizer::Load(folder.path(), {.token_rows = rows});
    EXPECT_THAT(tokenizer, IsOk());
    return *std::move(tokenizer);
  };
  EXPECT_THAT(Ids(*load(5), "abb"), ElementsAre(1, 4));
  EXPECT_TRUE(load(5)->remarks().notes.empty());
  const auto without = load(4);
  EXPECT_THAT(Ids(*without, "abb"), ElementsAre(1, 2, 2));
  EXPECT_EQ(without->vocab_size(), 4);
  EXPECT_THAT(without->remarks().notes,
              ElementsAre("added tokens without a row in the token table of 4 "
                          "are ignored: 1, such as 'bb'"));
  // One that the template needs stays: the caller refuses such a pair of files.
  json["post_processor"] = Json::parse(
      R"({"type": "BertProcessing", "cls": ["bb", 4], "sep": ["bb", 4]})");
  folder.Write("tokenizer.json", json.dump());
  EXPECT_EQ(load(4)->vocab_size(), 5);
}

TEST(UnigramLoadTest, RefusesVocabulariesThatCannotBe) {
  const auto with = [](const char* key, const char* value) {
    Json json = GoodJson();
    json["model"][key] = Json::parse(value);
    return LoadJson(json).status();
  };
  EXPECT_THAT(with("vocab", R"([["a", "x"]])"),
              IsError(kLoss, "vocab[0] = an array must be"));
  EXPECT_THAT(with("vocab", R"([["a", null]])"), IsError(kLoss, "vocab[0]"));
  EXPECT_THAT(with("vocab", R"([["a"]])"), IsError(kLoss, "vocab[0]"));
  EXPECT_THAT(with("vocab", R"([[1, 1]])"), IsError(kLoss, "vocab[0]"));
  EXPECT_THAT(with("vocab", R"({"a": 0})"), IsError(kLoss, "an array"));
  EXPECT_THAT(with("vocab", "[]"), IsError(kLoss, "unk_id"));
  EXPECT_THAT(with("unk_id", "4"), IsError(kLoss, "unk_id"));
  EXPECT_THAT(with("unk_id", "-1"), IsError(kLoss, "unk_id"));
  EXPECT_THAT(with("unk_id", "null"), IsError(kUnsupported, "unk_id 'null'"));
  EXPECT_THAT(with("byte_fallback", "1"), IsError(kLoss, "byte_fallback"));
}

TEST(UnigramLoadTest, RefusesNormalizersByName) {
  const auto with = [](const char* normalizer) {
    Json json = GoodJson();
    json["normalizer"] = Json::parse(normalizer);
    return LoadJson(json).status();
  };
  EXPECT_THAT(with(R"({"type": "Nmt"})"), IsError(kUnsupported, "'Nmt'"));
  EXPECT_THAT(with(R"({"type": "Sequence", "normalizers": 1})"),
              IsError(kLoss, "normalizers must be an array"));
  for (const char* regex :
       {"\\s+", "a|b", " {2,3}", "ab+", "", " {0,}", ".+", " {,}", " {-1,}",
        "[a]", "a{ 2,}", "a{+2,}", "a{2 ,}"}) {
    const Json step = {
        {"type", "Replace"}, {"pattern", {{"Regex", regex}}}, {"content", ""}};
    EXPECT_THAT(with(step.dump().c_str()),
                IsError(kUnsupported, "Replace of the expression"))
        << regex;
  }
  EXPECT_THAT(
      with(R"({"type": "Replace", "pattern": {"String": ""}, "content": ""})"),
      IsError(kLoss, "not empty"));
  EXPECT_THAT(with(R"({"type": "Replace", "pattern": "a", "content": ""})"),
              IsError(kLoss, "normalizer.pattern"));
  EXPECT_THAT(
      with(R"({"type": "Replace", "pattern": {"String": "a"}, "content": 7})"),
      IsError(kLoss,
              "tokenizer.json: normalizer: content is 7; expected a string"));
  EXPECT_THAT(
      with(R"({"type": "Prepend", "prepend": 7})"),
      IsError(kLoss,
              "tokenizer.json: normalizer: prepend is 7; expected a string"));
  EXPECT_THAT(with(R"({"type": "Precompiled"})"),
              IsError(kLoss,
                      "tokenizer.json: normalizer: precompiled_charsmap is "
                      "missing; expected a string"));
  EXPECT_THAT(with(R"({"type": "Prepend", "prepend": ""})"),
              IsError(kUnsupported, "Prepend of ''"));
  EXPECT_THAT(with(R"({"type": "Precompiled", "precompiled_charsmap": "%"})"),
              IsError(kLoss, "base64"));
  EXPECT_THAT(
      with(R"({"type": "Precompiled", "precompiled_charsmap": "AAAA"})"),
      IsError(kLoss, "precompiled_charsmap: the character map has 3 bytes"));
}

TEST(UnigramLoadTest, RefusesPreTokenizersByName) {
  const auto with = [](const char* step) {
    Json json = GoodJson();
    json["pre_tokenizer"] = Json::parse(step);
    return LoadJson(json).status();
  };
  EXPECT_THAT(with(R"({"type": "Digits"})"), IsError(kUnsupported, "'Digits'"));
  EXPECT_THAT(with(R"({"type": "Metaspace", "replacement": "ab"})"),
              IsError(kLoss, "one character"));
  EXPECT_THAT(with(R"({"type": "Metaspace", "replacement": "_",
                       "prepend_scheme": "last"})"),
              IsError(kUnsupported, "prepend_scheme 'last'"));
  EXPECT_THAT(with(R"({"type": "Metaspace", "replacement": "_",
                       "prepend_scheme": "always", "add_prefix_space": false})"),
              IsError(kLoss, "add_prefix_space"));
  EXPECT_THAT(with(R"({"type": "ByteLevel", "add_prefix_space": true})"),
              IsError(kUnsupported, "ByteLevel without model BPE"));
  EXPECT_THAT(with("null"), IsOk());
}

TEST(UnigramLoadTest, RefusesSettingsOfPreTokenizersOfAnotherType) {
  struct Case {
    const char* type;
    const char* key;
    const char* value;
    const char* error;
  };
  for (const Case& x :
       {Case{"Metaspace", "replacement", "7", "7; expected a string"},
        Case{"Metaspace", "prepend_scheme", "7", "7; expected a string"},
        Case{"Metaspace", "add_prefix_space", "1", "1; expected true or false"},
        Case{"Metaspace", "split", "1", "1; expected true or false"},
        Case{"ByteLevel", "use_regex", "1", "1; expected true or false"}}) {
    Json json = GoodJson();
    json["pre_tokenizer"] = {
        {"type", x.type}, {"replacement", "_"}, {"add_prefix_space", true}};
    json["pre_tokenizer"][x.key] = Json::parse(x.value);
    EXPECT_THAT(LoadJson(json),
                IsError(kLoss, absl::StrCat("tokenizer.json: pre_tokenizer: ",
                                            x.key, " is ", x.error)));
  }
}

TEST(UnigramLoadTest, LimitsTheStepsOfASequenceAlsoInSequences) {
  const auto sequence = [](const std::vector<Json>& steps) {
    return Json{{"type", "Sequence"}, {"pretokenizers", steps}};
  };
  const Json step = Json::parse(R"({"type": "WhitespaceSplit"})");
  const auto twice = [&](size_t steps) {
    const Json part = sequence(std::vector<Json>(steps, step));
    Json json = GoodJson();
    json["pre_tokenizer"] = sequence({part, part});
    return LoadJson(json).status();
  };
  EXPECT_THAT(twice(16), IsOk());
  EXPECT_THAT(twice(17), IsError(kLoss,
                                 "tokenizer.json: a sequence must be of at "
                                 "most 32 steps"));
  Json json = GoodJson();
  json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", 1}};
  EXPECT_THAT(LoadJson(json),
              IsError(kLoss,
                      "tokenizer.json: pre_tokenizer.pretokenizers must be an "
                      "array"));
}

}  // namespace
}  // namespace encoderd
