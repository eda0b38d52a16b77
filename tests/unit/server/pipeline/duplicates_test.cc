#include "server/pipeline/duplicates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace encoderd {
namespace {

TokenSequence Ids(std::vector<int32_t> ids) { return {std::move(ids), {}, {}}; }

TEST(DuplicatesTest, EqualSequencesAreOneRowInTheOrderOfTheFirst) {
  const std::vector<TokenSequence> sequences = {Ids({1, 7, 2}), Ids({1, 8, 2}),
                                                Ids({1, 7, 2}), Ids({1, 7}),
                                                Ids({1, 8, 2})};
  Duplicates duplicates;
  duplicates.Begin(5);
  std::vector<int32_t> rows;
  for (const TokenSequence& sequence : sequences) {
    rows.push_back(duplicates.RowOf(sequence, {}));
  }
  EXPECT_EQ(rows, (std::vector<int32_t>{0, 1, 0, 2, 1}));
  EXPECT_EQ(duplicates.rows(), 3);
}

TEST(DuplicatesTest, ABatchKnowsNothingOfTheOneBefore) {
  const TokenSequence sequence = Ids({1, 7, 2});
  Duplicates duplicates;
  duplicates.Begin(1);
  EXPECT_EQ(duplicates.RowOf(sequence, {}), 0);
  duplicates.Begin(1);
  EXPECT_EQ(duplicates.rows(), 0);
  EXPECT_EQ(duplicates.RowOf(sequence, {}), 0);
}

TEST(DuplicatesTest, EverythingThatMayChangeTheBitsTellsThemApart) {
  const std::vector<TokenSequence> sequences = {
      {{1, 7, 2}, {}, {}},        {{1, 7, 2}, {0, 0, 0}, {}},
      {{1, 7, 2}, {0, 0, 1}, {}}, {{1, 7, 2}, {}, {0, 1, 2}},
      {{1, 7, 2}, {}, {0, 1, 3}}, {{1, 7, 3}, {}, {}}};
  std::vector<SequenceOutput> outputs(5);
  outputs[1].kind = SequenceOutput::Kind::kStates;
  outputs[2].pooling = Pooling::kCls;
  outputs[3].normalize = true;
  outputs[4].layer = 1;
  Duplicates duplicates;
  duplicates.Begin(12);
  int32_t row = 0;
  for (const TokenSequence& sequence : sequences) {
    EXPECT_EQ(duplicates.RowOf(sequence, {}), row++);
  }
  for (size_t i = 1; i < outputs.size(); ++i) {
    EXPECT_EQ(duplicates.RowOf(sequences[0], outputs[i]), row++);
  }
  EXPECT_EQ(duplicates.RowOf(sequences[2], {}), 2);
}

// Sequences that differ in their positions only have the same hash.
TEST(DuplicatesTest, ComparesWithFewWhateverTheIds) {
  constexpr int32_t kSequences = 1000;
  std::vector<TokenSequence> sequences;
  for (int32_t i = 0; i < kSequences; ++i) {
    sequences.push_back({{1, 2}, {}, {0, i}});
  }
  Duplicates duplicates;
  duplicates.Begin(2 * kSequences);
  for (int32_t i = 0; i < kSequences; ++i) {
    EXPECT_EQ(duplicates.RowOf(sequences[i], {}), i);
  }
  // Those that it keeps are found, the others are rows again.
  for (int32_t i = 0; i < kSequences; ++i) {
    const int32_t row = duplicates.RowOf(sequences[i], {});
    const bool kept = i < Duplicates::kMostCompared;
    EXPECT_EQ(row, kept ? i : kSequences + i - Duplicates::kMostCompared);
  }
}

TEST(DuplicatesTest, FindsWhatComparingAllPairsFinds) {
  std::mt19937 random(3);
  Duplicates duplicates;
  int64_t found = 0;
  int64_t missed = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<TokenSequence> sequences(1 + random() % 400);
    for (TokenSequence& sequence : sequences) {
      sequence.token_ids.resize(1 + random() % 6);
      for (int32_t& id : sequence.token_ids) id = random() % 5;
      if (random() % 4 == 0) {
        sequence.segment_ids.assign(sequence.token_ids.size(), 0);
      }
    }
    std::vector<const TokenSequence*> rows;
    duplicates.Begin(static_cast<int64_t>(sequences.size()));
    for (const TokenSequence& sequence : sequences) {
      const auto same = [&](const TokenSequence* row) {
        return row->token_ids == sequence.token_ids &&
               row->segment_ids == sequence.segment_ids;
      };
      const bool known = std::any_of(rows.begin(), rows.end(), same);
      const auto row =
          static_cast<size_t>(duplicates.RowOf(sequence, SequenceOutput()));
      ASSERT_LE(row, rows.size());
      if (row == rows.size()) {
        rows.push_back(&sequence);
        missed += known ? 1 : 0;
      } else {
        ASSERT_TRUE(same(rows[row]));
        ++found;
      }
    }
  }
  EXPECT_GT(found, 1000);
  EXPECT_LE(missed, found / 100);  // behind kMostCompared others
}

}  // namespace
}  // namespace encoderd
