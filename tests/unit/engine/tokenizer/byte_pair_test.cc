#include "engine/tokenizer/bpe/byte_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

constexpr auto kLoss = absl::StatusCode::kDataLoss;

struct Made {
  std::vector<std::string> vocabulary;
  BytePairOptions options;
};

// The letters, then what each merge "left right" makes.
Made Make(const std::string& letters, const std::vector<std::string>& merges) {
  Made made;
  for (const char c : letters) made.vocabulary.push_back(std::string(1, c));
  const auto find = [&](const std::string& entry) {
    const auto at =
        std::find(made.vocabulary.begin(), made.vocabulary.end(), entry);
    return static_cast<int32_t>(at - made.vocabulary.begin());
  };
  for (const std::string& merge : merges) {
    const size_t space = merge.find(' ');
    const std::string left = merge.substr(0, space);
    const std::string right = merge.substr(space + 1);
    if (find(left + right) == static_cast<int32_t>(made.vocabulary.size())) {
      made.vocabulary.push_back(left + right);
    }
    made.options.merges.push_back(
        {find(left), find(right), find(left + right)});
  }
  return made;
}

std::unique_ptr<const BytePair> Build(Made made) {
  auto model =
      BytePair::Build(std::move(made.vocabulary), std::move(made.options));
  EXPECT_THAT(model, IsOk());
  return model.ok() ? *std::move(model) : nullptr;
}

// "token token ..." with places that must follow each other.
std::string Encode(const BytePair& model, const std::string& word) {
  const auto scratch = model.NewScratch();
  model.Encode(word, scratch.get());
  std::vector<std::string> tokens;
  int32_t at = 0;
  for (const TokenModel::Piece& piece : scratch->pieces) {
    EXPECT_EQ(piece.begin, at);
    at = piece.end;
    tokens.push_back(model.vocabulary()[piece.id]);
  }
  return absl::StrJoin(tokens, " ");
}

TEST(BytePairTest, MergesInTheOrderOfTheListLeftmostFirst) {
  const auto model = Build(Make("abc", {"b c", "a b", "a a", "aa aa"}));
  EXPECT_EQ(Encode(*model, "abc"), "a bc");
  EXPECT_EQ(Encode(*model, "abab"), "ab ab");
  EXPECT_EQ(Encode(*model, "aaa"), "aa a");
  EXPECT_EQ(Encode(*model, "aaaaa"), "aaaa a");
  EXPECT_EQ(Encode(*model, "c"), "c");
}

TEST(BytePairTest, OfAPairThatIsListedTwiceTheLastCounts) {
  const auto model = Build(Make("abc", {"a b", "b c", "a b"}));
  EXPECT_EQ(Encode(*model, "abc"), "a bc");
}

TEST(BytePairTest, AByteWithoutAnEntryIsUnknownOrNothing) {
  Made made = Make("ab", {"a b"});
  EXPECT_EQ(Build(made)->missing_bytes(), 254);
  EXPECT_EQ(Encode(*Build(made), "abxxab"), "ab ab");
  made.vocabulary.push_back("<unk>");
  made.options.unk_token = "<unk>";
  EXPECT_EQ(Encode(*Build(made), "abxxab"), "ab <unk> <unk> ab");
  made.options.fuse_unk = true;
  EXPECT_EQ(Encode(*Build(made), "xabxx"), "<unk> ab <unk>");
}

TEST(BytePairTest, AWordThatIsAnEntryIsThatTokenWhenMergesAreIgnored) {
  Made made = Make("abc", {"a b"});
  made.vocabulary.push_back("abc");
  EXPECT_EQ(Encode(*Build(made), "abc"), "ab c");
  made.options.ignore_merges = true;
  EXPECT_EQ(Encode(*Build(made), "abc"), "abc");
  EXPECT_EQ(Encode(*Build(made), "abcc"), "ab c c");
}

// The definition: the pair of the lowest rank, the leftmost of equals, until
// there is none.
std::string ByDefinition(const Made& made, const std::string& word) {
  std::vector<int32_t> ids;
  for (const char c : word) {
    const auto at = std::find(made.vocabulary.begin(), made.vocabulary.end(),
                              std::string(1, c));
    ids.push_back(static_cast<int32_t>(at - made.vocabulary.begin()));
  }
  for (size_t rank = 0; rank < made.options.merges.size();) {
    const BytePairOptions::Merge& merge = made.options.merges[rank];
    bool merged = false;
    for (size_t i = 0; i + 1 < ids.size() && !merged; ++i) {
      if (ids[i] != merge.left || ids[i + 1] != merge.right) continue;
      ids[i] = merge.result;
      ids.erase(ids.begin() + static_cast<int64_t>(i) + 1);
      merged = true;
    }
    rank = merged ? 0 : rank + 1;
  }
  std::vector<std::string> tokens;
  for (const int32_t id : ids) tokens.push_back(made.vocabulary[id]);
  return absl::StrJoin(tokens, " ");
}

TEST(BytePairTest, ShortAndLongWordsAreMergedAsTheDefinitionSays) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> entries = {"a", "b", "c"};
    std::vector<std::string> merges;
    for (int i = 0; i < 12; ++i) {
      const std::string left = entries[random() % entries.size()];
      const std::string right = entries[random() % entries.size()];
      const std::string merge = absl::StrCat(left, " ", right);
      if (std::count(merges.begin(), merges.end(), merge) > 0) continue;
      merges.push_back(merge);
      entries.push_back(left + right);
    }
    const Made made = Make("abc", merges);
    const auto model = Build(made);
    for (const size_t length : {2u, 7u, 47u, 48u, 49u, 50u, 120u}) {
      std::string word;
      while (word.size() < length)
        word += static_cast<char>('a' + random() % 3);
      ASSERT_EQ(Encode(*model, word), ByDefinition(made, word)) << word;
    }
  }
}

// Work that grew with the square of the length would take hours here.
TEST(BytePairTest, AWordOfFourMegabytesIsNoTrouble) {
  const auto model = Build(Make("abc", {"a b", "ab ab", "abab abab"}));
  std::string word;
  while (word.size() < 4 << 20) word += "abababab";
  const auto scratch = model->NewScratch();
  model->Encode(word, scratch.get());
  EXPECT_EQ(scratch->pieces.size(), word.size() / 8);
  scratch->Shrink();
  EXPECT_EQ(scratch->pieces.capacity(), 0u);
}

TEST(BytePairTest, RefusesWhatDoesNotFit) {
  const auto build = [](Made made) {
    return BytePair::Build(std::move(made.vocabulary), std::move(made.options))
        .status();
  };
  EXPECT_THAT(build({{}, {}}), IsError(kLoss, "the vocabulary is empty"));
  EXPECT_THAT(build({{"a", "b", "a"}, {}}),
              IsError(kLoss, "\"a\" has two ids, 0 and 2"));
  EXPECT_THAT(build({{"a", ""}, {}}), IsError(kLoss, "entry 1 has 0 bytes"));
  EXPECT_THAT(build({{std::string(1025, 'a')}, {}}),
              IsError(kLoss, "has 1025 bytes; it must have 1 to 1024"));
  EXPECT_THAT(build({{"\xFF"}, {}}), IsError(kLoss, "entry 0 is not UTF-8"));
  Made made = Make("ab", {"a b"});
  made.options.merges.push_back({0, 3, 1});
  EXPECT_THAT(build(made), IsError(kLoss,
                                   "merge 1 names the token id 3; the "
                                   "vocabulary has 3"));
  made = Make("ab", {"a b"});
  made.options.unk_token = "<unk>";
  EXPECT_THAT(build(made), IsError(kLoss, "lacks the unknown token \"<unk>\""));
  made = Make("ab", {});
  made.options.merges.resize(BytePair::kMaxMerges + 1);
  EXPECT_THAT(
      build(std::move(made)),
      IsError(kLoss, "the vocabulary has 4194305 merges; at most 4194304"));
}

}  // namespace
}  // namespace encoderd
