#include "engine/tokenizer/added_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

// "text|id:added|..." of the pieces.
std::string Split(std::vector<AddedToken> tokens, const std::string& text) {
  absl::StatusOr<AddedTokens> made = AddedTokens::Build(std::move(tokens));
  EXPECT_THAT(made, IsOk());
  std::vector<AddedTokens::Piece> pieces;
  made->Split(text, &pieces);
  std::string shown;
  for (const AddedTokens::Piece& piece : pieces) {
    if (!shown.empty()) shown += "|";
    if (piece.id >= 0) absl::StrAppend(&shown, piece.id, ":");
    shown += text.substr(piece.begin, piece.end - piece.begin);
  }
  return shown;
}

AddedToken Token(const std::string& content, int id) {
  AddedToken token;
  token.content = content;
  token.id = id;
  return token;
}

TEST(AddedTokensTest, SplitsTextAroundTokens) {
  EXPECT_EQ(Split({Token("[S]", 1)}, "a[S]b [S][S"), "a|1:[S]|b |1:[S]|[S");
  EXPECT_EQ(Split({Token("[S]", 1)}, ""), "");
  EXPECT_EQ(Split({}, "abc"), "abc");
}

TEST(AddedTokensTest, TheLongestTokenAtAPlaceWins) {
  const std::vector<AddedToken> tokens = {Token("ab", 1), Token("abcd", 2),
                                          Token("c", 3)};
  EXPECT_EQ(Split(tokens, "abcd"), "2:abcd");
  EXPECT_EQ(Split(tokens, "abcx"), "1:ab|3:c|x");
  EXPECT_EQ(Split(tokens, "xabab"), "x|1:ab|1:ab");
}

TEST(AddedTokensTest, ASingleWordTokenNeedsNoWordCharacterNextToIt) {
  AddedToken token = Token("tok", 1);
  token.single_word = true;
  EXPECT_EQ(Split({token}, "tok atok toka tok,(tok)"),
            "1:tok| atok toka |1:tok|,(|1:tok|)");
  EXPECT_EQ(Split({token}, "\u00e9tok \u3002tok"), "\u00e9tok \u3002|1:tok");
}

TEST(AddedTokensTest, StripsWhiteSpaceOnTheSidesThatItMay) {
  AddedToken left = Token("<l>", 1);
  left.lstrip = true;
  AddedToken right = Token("<r>", 2);
  right.rstrip = true;
  EXPECT_EQ(Split({left, right}, "a \u3000<l> b<r> \n<l>"),
            "a|1: \u3000<l>| b|2:<r> \n|1:<l>");
}

TEST(AddedTokensTest, ATokenOfSpacesInsideStrippedSpacesStaysInBounds) {
  AddedToken right = Token("a", 1);
  right.rstrip = true;
  EXPECT_EQ(Split({right, Token(" ", 2)}, "a   b"), "1:a   |2: |2: |2: |b");
}

// Places as tokenizers 0.23 gives them.
TEST(AddedTokensTest, TokensOfSpacesShareThoseThatAreStripped) {
  AddedToken right = Token("<r>", 1);
  right.rstrip = true;
  AddedToken two = Token("  ", 2);
  EXPECT_EQ(Split({right, two, Token("   ", 3)}, "<r>    x"),
            "1:<r>    |3:   | x");
  two.lstrip = true;
  EXPECT_EQ(Split({right, two}, "<r>  x"), "1:<r>  |x");
}

TEST(AddedTokensTest, RefusesWhatCannotBeLookedFor) {
  constexpr auto kLoss = absl::StatusCode::kDataLoss;
  EXPECT_THAT(AddedTokens::Build({Token("", 7)}),
              IsError(kLoss, "added token 7 has 0 bytes"));
  EXPECT_THAT(AddedTokens::Build({Token(std::string(257, 'x'), 7)}),
              IsError(kLoss, "257 bytes"));
  EXPECT_THAT(AddedTokens::Build({Token("a", 1), Token("a", 2)}),
              IsError(kLoss, "added tokens 1 and 2"));
  EXPECT_THAT(
      AddedTokens::Build(std::vector<AddedToken>(AddedTokens::kMaxTokens + 1)),
      IsError(kLoss, "the tokenizer has 65537 added tokens; at most 65536"));
}

}  // namespace
}  // namespace encoderd
