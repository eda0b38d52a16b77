// Tokens that tokenizer_config.json and its neighbors add to tokenizer.json's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/tokenizer/tokenizer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/engine/tokenizer/small_tokenizer.h"

namespace encoderd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kConfig[] = "tokenizer_config.json";

// [UNK] 0, [MASK] 1, a 2, b 3, [x] 4, [ 5, x 6, ] 7; [MASK] alone is added.
class ConfigTokensTest : public testing::Test {
 protected:
  ConfigTokensTest() {
    folder_.Write("tokenizer.json", R"({"added_tokens": [
          {"id": 1, "content": "[MASK]", "single_word": false,
           "lstrip": false, "rstrip": false, "normalized": false,
           "special": true}],
        "normalizer": {"type": "BertNormalizer", "clean_text": true,
          "handle_chinese_chars": true, "strip_accents": null,
          "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab":
          {"[UNK]": 0, "[MASK]": 1, "a": 2, "b": 3, "[x]": 4, "[": 5, "x": 6,
           "]": 7}}})");
  }

  absl::StatusOr<std::unique_ptr<const Tokenizer>> Load(const char* config) {
    folder_.Write(kConfig, config);
    return Tokenizer::Load(folder_.path());
  }

  const TempFolder folder_;
};

TEST_F(ConfigTokensTest, ReplacesFlagsByThoseOfTheDecoder) {
  auto tokenizer = Load(R"({"added_tokens_decoder": {"1":
      {"content": "[MASK]", "normalized": false, "special": true}}})");
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Ids(**tokenizer, "a[MASK]b"), ElementsAre(2, 1, 3));
  EXPECT_TRUE((*tokenizer)->is_special(1));
  EXPECT_THAT((*tokenizer)->remarks().notes, IsEmpty());
  tokenizer = Load(R"({"added_tokens_decoder": {"1":
      {"content": "[MASK]", "single_word": true, "special": false}}})");
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Ids(**tokenizer, "a[MASK]b"), ElementsAre(2, 5, 0, 7, 3));
  EXPECT_FALSE((*tokenizer)->is_special(1));
  EXPECT_THAT(
      (*tokenizer)->remarks().notes,
      ElementsAre("tokenizer_config.json: its flags of tokens replace those of "
                  "tokenizer.json, as in transformers: 1, such as '[MASK]'"));
}

TEST_F(ConfigTokensTest, LooksForSpecialTokensThatAreNamed) {
  for (const char* config :
       {R"({"additional_special_tokens": ["[x]", "[x]"]})",
        R"({"extra_special_tokens": [{"content": "[x]"}]})",
        R"({"extra_special_tokens": {"image": "[x]"}})",
        R"({"model_specific_special_tokens": {"image": "[x]"}})",
        R"({"image_token": "[x]"})",
        R"({"image_token": {"__type": "AddedToken", "content": "[x]"}})",
        R"({"bos_token": "[x]", "mask_token": "[MASK]", "cls_token": null})",
        R"({"sep_token": {"content": "[x]", "lstrip": false}})"}) {
    const auto tokenizer = Load(config);
    ASSERT_THAT(tokenizer, IsOk());
    EXPECT_THAT(Ids(**tokenizer, "a[x]b"), ElementsAre(2, 4, 3));
    EXPECT_TRUE((*tokenizer)->is_special(4));
    EXPECT_THAT(
        (*tokenizer)->remarks().notes,
        ElementsAre("tokenizer_config.json: texts are searched for its special "
                    "tokens, as in transformers: 1, such as '[x]'"));
  }
}

// The next free id, which a padded table has a row for.
TEST_F(ConfigTokensTest, GivesTokensWithNamesTheirIdsBeforeThoseOfLists) {
  const auto tokenizer = Load(R"({"additional_special_tokens": ["<x>"],
      "extra_special_tokens": ["<y>"], "z_token": "<z>"})");
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Ids(**tokenizer, "<z><x><y>"), ElementsAre(8, 9, 10));
  EXPECT_THAT(
      Load(R"({"z_token": "<z>", "a_token": "<a>"})"),
      IsError(kUnsupported, "the vocabulary lacks the tokens '<a>' and '<z>'"));
  EXPECT_THAT(Load(R"({"z_token": "<z>", "a_token": "a"})"), IsOk());
  EXPECT_THAT(Load(R"({"add_z_token": true, "z_token": {"__type": 5}})"),
              IsOk());
}

TEST_F(ConfigTokensTest, GivesNewTokensTheNextIds) {
  folder_.Write(kConfig, R"({"bos_token": "[one]", "eos_token": "[two]"})");
  const auto ids = [this](int32_t rows) {
    const auto tokenizer =
        Tokenizer::Load(folder_.path(), {.token_rows = rows});
    EXPECT_THAT(tokenizer, IsOk());
    return Ids(**tokenizer, "a[two][one]");
  };
  EXPECT_THAT(ids(10), ElementsAre(2, 9, 8));
  EXPECT_THAT(ids(9), ElementsAre(2, 5, 0, 7, 8));
  EXPECT_THAT(ids(8), ElementsAre(2, 5, 0, 7, 5, 0, 7));
}

// Such settings count without tokenizer.json, too.
TEST_F(ConfigTokensTest, ReadsThemForAVocabulary) {
  const TempFolder folder;
  folder.Write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\n[x]\n");
  folder.Write(kConfig, R"({"additional_special_tokens": ["[x]"]})");
  const auto tokenizer = Tokenizer::Load(folder.path());
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Ids(**tokenizer, "a[x]a"), ElementsAre(1, 3, 4, 3, 2));
  for (const bool single : {false, true}) {
    folder.Write(kConfig, std::string(R"({"added_tokens_decoder": {"0":
                     {"content": "[UNK]", "special": true, "single_word": )") +
                              (single ? "true" : "false") + "}}}");
    const auto read = Tokenizer::Load(folder.path());
    ASSERT_THAT(read, IsOk());
    // Within a word it is then three unknown ones.
    EXPECT_EQ(Ids(**read, "a[UNK]a").size(), single ? 7u : 5u);
  }
  folder.Write(kConfig, R"({"split_special_tokens": true})");
  EXPECT_THAT(Tokenizer::Load(folder.path()),
              IsError(kUnsupported, "split_special_tokens true"));
}

// Files of older versions, which count without added_tokens_decoder.
TEST_F(ConfigTokensTest, ReadsTheFilesOfOlderVersions) {
  for (const char* const map :
       {R"({"image_token": {"content": "[x]"}})", R"({"sep_token": "[x]"})"}) {
    folder_.Write("special_tokens_map.json", map);
    const auto tokenizer = Load("{}");
    ASSERT_THAT(tokenizer, IsOk()) << map;
    EXPECT_THAT(Ids(**tokenizer, "a[x]"), ElementsAre(2, 4)) << map;
  }
  auto tokenizer = Load("{}");
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Ids(**tokenizer, "a[x]b"), ElementsAre(2, 4, 3));
  folder_.Write("added_tokens.json", R"({"[MASK]": 1})");
  EXPECT_THAT(Load("{}"), IsOk());
  folder_.Write("added_tokens.json", R"({"<new>": 8})");
  EXPECT_THAT(Load("{}"),
              IsError(kUnsupported,
                      "added_tokens.json: the token '<new>' next to "
                      "tokenizer.json is not supported"));
  tokenizer = Load(R"({"added_tokens_decoder": {"1": {"content": "[MASK]"}}})");
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Ids(**tokenizer, "a[x]b"), ElementsAre(2, 5, 6, 7, 3));
}

TEST_F(ConfigTokensTest, RefusesATokenThatTheFileLacks) {
  EXPECT_THAT(Load(R"({"added_tokens_decoder": {"2": {"content": "a"}}})"),
              IsError(kUnsupported,
                      "tokenizer_config.json: added_tokens_decoder['2'] next "
                      "to tokenizer.json is not supported; save the tokenizer "
                      "again"));
}

TEST_F(ConfigTokensTest, NamesWhatHasAnotherType) {
  EXPECT_THAT(Load(R"({"added_tokens_decoder": {"1": 5}})"),
              IsError(kLoss,
                      "added_tokens_decoder['1'] is 5; expected a "
                      "string or an object"));
  EXPECT_THAT(Load(R"({"additional_special_tokens": "[x]"})"),
              IsError(kLoss,
                      "additional_special_tokens is '[x]'; expected an "
                      "array"));
  EXPECT_THAT(Load(R"({"mask_token": [1]})"),
              IsError(kLoss,
                      "mask_token is an array; expected a string or an "
                      "object"));
  EXPECT_THAT(Load(R"({"mask_token": {"content": "[x]", "lstrip": 1}})"),
              IsError(kLoss, "mask_token: lstrip is 1"));
  EXPECT_THAT(Load(R"({"additional_special_tokens": ["[x]", 7]})"),
              IsError(kLoss, "additional_special_tokens[1] is 7; expected"));
}

}  // namespace
}  // namespace encoderd
