#include "engine/tokenizer/bpe/byte_level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace encoderd::byte_level {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Words(const std::string& text) {
  std::vector<TextRange> ranges;
  SplitWords(text, {0, static_cast<int32_t>(text.size())}, &ranges);
  std::vector<std::string> words;
  for (const TextRange& range : ranges) {
    words.push_back(text.substr(range.begin, range.end - range.begin));
  }
  return words;
}

TEST(ByteLevelTest, TranslatesEveryByteThereAndBack) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    EXPECT_EQ(ToBytes(FromBytes(bytes)), bytes) << byte;
  }
  EXPECT_EQ(FromBytes(" a\n"), "\u0120a\u010a");
  EXPECT_EQ(ToBytes("\u0120\u00e9"), " \xE9");
  EXPECT_EQ(ToBytes("a b"), std::nullopt);
  EXPECT_EQ(ToBytes("\u0144"), std::nullopt);
  EXPECT_EQ(ToBytes("\u2581"), std::nullopt);
}

TEST(ByteLevelTest, CutsLettersNumbersAndSignsWithASpaceBeforeThem) {
  EXPECT_THAT(Words("Hello world1 23!?"),
              ElementsAre("Hello", " world", "1", " 23", "!?"));
  EXPECT_THAT(Words("\u00e9t\u00e9 \u4e2d\u6587\u0661"),
              ElementsAre("\u00e9t\u00e9", " \u4e2d\u6587", "\u0661"));
  EXPECT_THAT(Words("e\u0301"), ElementsAre("e", "\u0301"));
  EXPECT_THAT(Words(""), ElementsAre());
}

TEST(ByteLevelTest, CutsEnglishContractions) {
  EXPECT_THAT(Words("we'll don't I'm they've 's"),
              ElementsAre("we", "'ll", " don", "'t", " I", "'m", " they", "'ve",
                          " '", "s"));
  EXPECT_THAT(Words("'S 'l 'r'"),
              ElementsAre("'", "S", " '", "l", " '", "r", "'"));
  EXPECT_THAT(Words("''s"), ElementsAre("''", "s"));
}

TEST(ByteLevelTest, OfSeveralSpacesTheLastGoesWithWhatFollows) {
  EXPECT_THAT(Words("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(Words("a \n b\n"), ElementsAre("a", " \n", " b", "\n"));
  EXPECT_THAT(Words("a\n\nb"), ElementsAre("a", "\n", "\n", "b"));
  EXPECT_THAT(Words("a  "), ElementsAre("a", "  "));
  EXPECT_THAT(Words(" "), ElementsAre(" "));
  EXPECT_THAT(Words("\u3000\u3000b"), ElementsAre("\u3000", "\u3000", "b"));
}

}  // namespace
}  // namespace encoderd::byte_level
