#include "engine/row_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace encoderd {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;

PackedBatch Lengths(const std::vector<int32_t>& lengths) {
  PackedBatch batch;
  for (const int32_t length : lengths) {
    batch.cu_seqlens.push_back(batch.cu_seqlens.back() + length);
    batch.max_seqlen = std::max(batch.max_seqlen, length);
  }
  return batch;
}

// All groups of a batch that is padded with `padding` rows.
std::vector<RowGroup> Groups(const PackedBatch& batch, int64_t row_block,
                             int64_t padding = 0) {
  std::vector<RowGroup> groups;
  for (int64_t b = 0; b < batch.num_sequences();) {
    groups.push_back(
        RowGroupFrom(b, batch, row_block, batch.cu_seqlens.back() + padding));
    b = groups.back().end_sequence;
  }
  return groups;
}

// Fields: first and end sequence, first row, rows.
TEST(RowGroupsTest, TakeAsManySequencesAsFitInARowBlock) {
  EXPECT_THAT(Groups(Lengths({3, 4, 5, 2}), 8),
              ElementsAre(FieldsAre(0, 2, 0, 7), FieldsAre(2, 4, 7, 7)));
  EXPECT_THAT(Groups(Lengths({3, 5, 1}), 8),
              ElementsAre(FieldsAre(0, 2, 0, 8), FieldsAre(2, 3, 8, 1)));
  EXPECT_THAT(Groups(Lengths({3, 6, 1}), 8),
              ElementsAre(FieldsAre(0, 1, 0, 3), FieldsAre(1, 3, 3, 7)));
  EXPECT_THAT(Groups(Lengths({8, 8}), 8),
              ElementsAre(FieldsAre(0, 1, 0, 8), FieldsAre(1, 2, 8, 8)));
}

TEST(RowGroupsTest, ASequenceLongerThanARowBlockIsAGroupAlone) {
  EXPECT_THAT(Groups(Lengths({1, 20, 1, 2}), 8),
              ElementsAre(FieldsAre(0, 1, 0, 1), FieldsAre(1, 2, 1, 20),
                          FieldsAre(2, 4, 21, 3)));
  EXPECT_THAT(Groups(Lengths({9}), 8), ElementsAre(FieldsAre(0, 1, 0, 9)));
}

TEST(RowGroupsTest, TheLastGroupHasTheRowsOfPadding) {
  EXPECT_THAT(Groups(Lengths({3, 4}), 16, 9),
              ElementsAre(FieldsAre(0, 2, 0, 16)));
  EXPECT_THAT(Groups(Lengths({3, 6}), 8, 2),
              ElementsAre(FieldsAre(0, 1, 0, 3), FieldsAre(1, 2, 3, 8)));
}

TEST(RowGroupsTest, AGroupStartsAtAnySequence) {
  EXPECT_THAT(RowGroupFrom(1, Lengths({3, 4, 5, 2}), 8, 14),
              FieldsAre(1, 2, 3, 4));
}

TEST(RowGroupsTest, EveryRowIsInOneGroupAndNoGroupHasMoreThanTheMostRows) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<int32_t> lengths(1 + random() % 12);
    for (int32_t& length : lengths)
      length = 1 + static_cast<int32_t>(random() % 10);
    const int64_t row_block = 1 + random() % 24;
    const PackedBatch batch = Lengths(lengths);
    const int64_t tokens = batch.cu_seqlens.back();
    int64_t rows = 0;
    for (const RowGroup& group : Groups(batch, row_block)) {
      EXPECT_EQ(group.first, rows);
      EXPECT_EQ(group.first, batch.cu_seqlens[group.first_sequence]);
      EXPECT_LE(group.rows,
                MostRowsOfGroup(tokens, row_block, batch.max_seqlen));
      rows += group.rows;
    }
    EXPECT_EQ(rows, tokens);
  }
}

TEST(RowGroupsTest, TheMostRowsAreThoseOfABlockOrOfTheLongestSequence) {
  EXPECT_EQ(MostRowsOfGroup(1000, 128, 512), 512);
  EXPECT_EQ(MostRowsOfGroup(1000, 128, 100), 128);
  EXPECT_EQ(MostRowsOfGroup(1000, 4096, 512), 1000);
}

}  // namespace
}  // namespace encoderd
