#include "engine/tokenizer/wordpiece/word_piece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "absl/status/status.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

WordPiece Make(std::vector<std::string> vocabulary,
               WordPieceOptions options = {}) {
  absl::StatusOr<WordPiece> made =
      WordPiece::Build(std::move(vocabulary), std::move(options));
  EXPECT_THAT(made, IsOk());
  return *std::move(made);
}

// The ids, or an empty list for an unknown word.
std::vector<int32_t> Match(const WordPiece& word_piece,
                           const std::string& word) {
  std::vector<int32_t> ids(word.size() + 1);
  int32_t* const end =
      word_piece.Match(word.data(), word.data() + word.size(), ids.data());
  if (end == nullptr) return {};
  ids.resize(end - ids.data());
  return ids;
}

// WordPiece as its definition says: the longest entry, again and again.
std::vector<int32_t> MatchByDefinition(const WordPiece& word_piece,
                                       const std::string& word) {
  std::vector<int32_t> ids;
  for (size_t begin = 0; begin < word.size();) {
    size_t end = word.size();
    int32_t id = -1;
    for (; end > begin && id < 0; --end) {
      const std::string piece = word.substr(begin, end - begin);
      id = word_piece.Find(
          begin == 0 ? piece : word_piece.options().continuing_prefix + piece);
      if (id >= 0) break;
    }
    if (id < 0) return {};
    ids.push_back(id);
    begin = end;
  }
  return ids;
}

TEST(WordPieceTest, TakesTheLongestEntryFirst) {
  const WordPiece made =
      Make({"[UNK]", "un", "una", "##a", "##aff", "##ff", "##able"});
  EXPECT_THAT(Match(made, "unaffable"), ElementsAre(2, 5, 6));
  EXPECT_THAT(Match(made, "un"), ElementsAre(1));
  EXPECT_THAT(Match(made, "unaff"), ElementsAre(2, 5));
}

TEST(WordPieceTest, AWordThatCannotBeFinishedIsUnknownAsAWhole) {
  const WordPiece made = Make({"[UNK]", "un", "##aff"});
  EXPECT_THAT(Match(made, "unaf"), IsEmpty());
  EXPECT_THAT(Match(made, "x"), IsEmpty());
  EXPECT_THAT(Match(made, "aff"), IsEmpty());
}

TEST(WordPieceTest, AgreesWithTheDefinitionOnRandomVocabularies) {
  std::mt19937 random(20240607);
  const auto word = [&](int most) {
    std::string out(1 + random() % most, 'a');
    for (char& c : out) c = static_cast<char>('a' + random() % 3);
    return out;
  };
  for (const std::string prefix : {"##", "", "a", "ab"}) {
    for (int round = 0; round < 100; ++round) {
      std::set<std::string> entries = {"[UNK]", prefix + "a"};
      const int count = 1 + static_cast<int>(random() % 40);
      for (int i = 0; i < count; ++i) {
        entries.insert(random() % 2 == 0 ? word(6) : prefix + word(6));
      }
      WordPieceOptions options;
      options.continuing_prefix = prefix;
      const WordPiece made =
          Make({entries.begin(), entries.end()}, std::move(options));
      for (int i = 0; i < 200; ++i) {
        const std::string text = word(24);
        ASSERT_EQ(Match(made, text), MatchByDefinition(made, text))
            << text << " with prefix \"" << prefix << "\"";
      }
    }
  }
}

TEST(WordPieceTest, EmptyEntriesHaveIdsAndMatchNothing) {
  for (const std::string prefix : {"##", ""}) {
    WordPieceOptions options;
    options.continuing_prefix = prefix;
    const WordPiece made =
        Make({"", "[UNK]", "un", "", prefix + "a"}, std::move(options));
    EXPECT_THAT(Match(made, "una"), ElementsAre(2, 4));
    EXPECT_THAT(Match(made, "unx"), IsEmpty());
    EXPECT_EQ(made.unk_id(), 1);
    EXPECT_EQ(made.Find("un"), 2);
  }
}

TEST(WordPieceTest, KnowsTheBytesThatATokenStandsFor) {
  const WordPiece made = Make({"[UNK]", "un", "##aff"});
  EXPECT_EQ(made.TokenBytes(1, true), 2);
  EXPECT_EQ(made.TokenBytes(2, false), 3);
  EXPECT_EQ(made.TokenBytes(2, true), 5);
}

TEST(WordPieceTest, RefusesBadVocabularies) {
  const auto build = [](std::vector<std::string> vocabulary) {
    return WordPiece::Build(std::move(vocabulary), {}).status();
  };
  constexpr auto kLoss = absl::StatusCode::kDataLoss;
  EXPECT_THAT(build({}), IsError(kLoss, "empty"));
  EXPECT_THAT(build({"[UNK]", "a", "b", "a"}), IsError(kLoss, "two ids"));
  EXPECT_THAT(build({"a"}), IsError(kLoss, "lacks the unknown token"));
  EXPECT_THAT(build({"[UNK]", "\xFF"}), IsError(kLoss, "not UTF-8"));
  EXPECT_THAT(build({"[UNK]", std::string(1025, 'x')}),
              IsError(kLoss, "1025 bytes"));
}

TEST(WordPieceTest, RefusesAVocabularyMadeToBlowUpTheFailureTable) {
  // A state of a long entry puts out as many tokens as it is deep.
  std::vector<std::string> vocabulary = {"[UNK]", "##a"};
  for (char first = 'A'; first <= 'z'; ++first) {
    vocabulary.push_back(std::string(1, first));
    vocabulary.push_back(first + std::string(1000, 'a'));
  }
  EXPECT_THAT(WordPiece::Build(std::move(vocabulary), {}).status(),
              IsError(absl::StatusCode::kDataLoss, "failure table"));
}

}  // namespace
}  // namespace encoderd
