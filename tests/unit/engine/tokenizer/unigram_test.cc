#include "engine/tokenizer/unigram/unigram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

constexpr auto kLoss = absl::StatusCode::kDataLoss;

struct Made {
  std::vector<std::string> vocabulary;
  UnigramOptions options;
};

Made Make(const std::vector<std::pair<std::string, double>>& entries) {
  Made made;
  made.vocabulary.push_back("<unk>");
  made.options.scores.push_back(0);
  for (const auto& [entry, score] : entries) {
    made.vocabulary.push_back(entry);
    made.options.scores.push_back(score);
  }
  return made;
}

absl::StatusOr<std::unique_ptr<const Unigram>> Build(Made made) {
  return Unigram::Build(std::move(made.vocabulary), std::move(made.options));
}

// "token token ..." with places that must follow each other.
std::string Encode(const Unigram& model, const std::string& word) {
  const auto scratch = model.NewScratch();
  model.Encode(word, scratch.get());
  std::vector<std::string> tokens;
  for (const TokenModel::Piece& piece : scratch->pieces) {
    tokens.push_back(absl::StrCat(model.vocabulary()[piece.id], ":",
                                  piece.begin, "-", piece.end));
  }
  return absl::StrJoin(tokens, " ");
}

TEST(UnigramTest, TakesTheCutOfTheGreatestSum) {
  const auto model = Build(Make(
      {{"a", -1}, {"b", -1}, {"ab", -3}, {"c", -5}, {"bc", -2}, {"abc", -4}}));
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(Encode(**model, "ab"), "a:0-1 b:1-2");
  EXPECT_EQ(Encode(**model, "abc"), "a:0-1 bc:1-3");
  EXPECT_EQ(Encode(**model, "cab"), "c:0-1 a:1-2 b:2-3");
}

TEST(UnigramTest, OfEqualSumsTheFirstFoundStays) {
  const auto model = Build(Make({{"a", -1}, {"aa", -2}}));
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(Encode(**model, "aa"), "aa:0-2");
  EXPECT_EQ(Encode(**model, "aaa"), "a:0-1 aa:1-3");
}

TEST(UnigramTest, UnknownCharactersInARowAreOneToken) {
  const auto model = Build(Make({{"a", -1}, {"\u00e9a", -1}}));
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(Encode(**model, "xya\u4e2d"), "<unk>:0-2 a:2-3 <unk>:3-6");
  EXPECT_EQ(Encode(**model, "\u00e9\u00e9a"), "<unk>:0-2 \u00e9a:2-5");
}

TEST(UnigramTest, UnknownTextThatIsAnEntryIsThatToken) {
  // Two unknown characters score 180, the entry 100.
  Made made = Make({{"xy", 100}});
  made.options.scores[0] = 100;
  const auto model = Build(std::move(made));
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(Encode(**model, "xy"), "xy:0-2");
}

TEST(UnigramTest, UnknownTextBecomesBytesWhereAllOfThemAreThere) {
  Made made = Make({{"<0xC3>", -1}, {"<0xA9>", -1}, {"a", -1}});
  made.options.byte_fallback = true;
  const auto model = Build(std::move(made));
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(Encode(**model, "a\u00e9"), "a:0-1 <0xC3>:1-3 <0xA9>:1-3");
  EXPECT_EQ(Encode(**model, "\u00e9x"), "<unk>:0-3");
}

// Work that grew with the square of the length would take hours here.
TEST(UnigramTest, AWordOfFourMegabytesIsNoTrouble) {
  const auto model = Build(Make({{"a", -1}, {"aaaa", -2}}));
  ASSERT_THAT(model, IsOk());
  const auto scratch = (*model)->NewScratch();
  (*model)->Encode(std::string(4 << 20, 'a'), scratch.get());
  EXPECT_EQ(scratch->pieces.size(), 1u << 20);
  scratch->Shrink();
  EXPECT_EQ(scratch->pieces.capacity(), 0u);
}

TEST(UnigramTest, RefusesWhatDoesNotFit) {
  Made made = Make({{"a", -1}});
  made.options.unk_id = 2;
  EXPECT_THAT(Build(made), IsError(kLoss,
                                   "unk_id is 2; it must be an id of "
                                   "the 2 entries"));
  made.options.unk_id = -1;
  EXPECT_THAT(Build(made), IsError(kLoss, "unk_id is -1"));
  made = Make({{"a", std::numeric_limits<double>::infinity()}});
  EXPECT_THAT(Build(made), IsError(kLoss, "entry 1 is not finite"));
  EXPECT_THAT(Build(Make({{"", 0}})), IsError(kLoss, "entry 1 has 0 bytes"));
  made = Make({{"a", 0}});
  made.options.scores.pop_back();
  EXPECT_THAT(Build(made), IsError(kLoss, "2 entries and 1 scores"));
}

}  // namespace
}  // namespace encoderd
