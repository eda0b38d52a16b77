// vocab.txt: what is an entry, and which ids count.
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

TEST(VocabularyLinesTest, LinesOfAVocabularyEndBeforeTheirWhiteSpace) {
  TempFolder folder;
  folder.Write("vocab.txt",
               "[UNK] \r\n[CLS]\t\n[SEP]\u00a0\na \t\u3000\r\n \u2028\n b\n"
               "c\u0085\nd\u200b\ne\r\r\n");
  const auto tokenizer = Tokenizer::Load(folder.path());
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Ids(**tokenizer, "a b c d e"), ElementsAre(1, 3, 0, 6, 0, 8, 2));
  EXPECT_EQ((*tokenizer)->vocab_size(), 9);
  EXPECT_EQ((*tokenizer)->Token(3), "a");
  EXPECT_EQ((*tokenizer)->Token(4), "");
  EXPECT_EQ((*tokenizer)->Token(5), " b");
  folder.Write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n\xff \n");
  EXPECT_THAT(Tokenizer::Load(folder.path()),
              IsError(kLoss, "vocabulary entry 3 is not UTF-8"));
}

TEST(VocabularyLinesTest, OfRepeatedLinesOfAVocabularyTheLastCounts) {
  TempFolder folder;
  const std::string vocabulary =
      "[CLS]\n[SEP]\n[UNK]\na\n##b\n\na \n[CLS]\n##b\n\n";
  folder.Write("vocab.txt", vocabulary);
  const auto tokenizer = Tokenizer::Load(folder.path());
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Ids(**tokenizer, "a ab [CLS] b"),
              ElementsAre(7, 6, 6, 8, 7, 2, 1));
  EXPECT_EQ((*tokenizer)->vocab_size(), 10);
  EXPECT_EQ((*tokenizer)->Token(3), "");
  EXPECT_EQ((*tokenizer)->Token(6), "a");
  // `tokenizers` counts entries: it gives a new token an id that a line has.
  for (const std::string& words :
       {vocabulary, std::string("[UNK]\n[CLS]\n[SEP]\n\n\n")}) {
    folder.Write("vocab.txt", words);
    folder.Write("tokenizer_config.json",
                 R"({"additional_special_tokens":["[NEW]"]})");
    EXPECT_THAT(Tokenizer::Load(folder.path()),
                IsError(absl::StatusCode::kUnimplemented,
                        "the vocabulary lacks the token '[NEW]', whose id "
                        "would depend on repeated lines of vocab.txt"));
  }
  folder.Write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n\na\n");
  EXPECT_THAT(Ids(*Tokenizer::Load(folder.path()).value(), "[NEW]"),
              ElementsAre(1, 5, 2));
}

}  // namespace
}  // namespace encoderd
