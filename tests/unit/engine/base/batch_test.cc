#include "engine/base/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/base/error.h"

namespace encoderd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

IdLimits SmallLimits() {
  IdLimits limits;
  limits.token_rows = 100;
  limits.segment_rows = 2;
  limits.position_rows = 10;
  limits.max_len = 8;
  return limits;
}

TokenSequence Tokens(std::vector<int32_t> ids) {
  TokenSequence sequence;
  sequence.token_ids = std::move(ids);
  return sequence;
}

// The refusal of `sequence`, whose code and message are checked here.
ErrorDetail Refusal(const TokenSequence& sequence, const IdLimits& limits,
                    const std::string& message) {
  const absl::Status status = ValidateSequence(sequence, limits);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  return GetErrorDetail(status).value_or(ErrorDetail{});
}

TEST(ValidateSequenceTest, TakesExactlyMaxLenTokens) {
  EXPECT_TRUE(
      ValidateSequence(Tokens(std::vector<int32_t>(8, 1)), SmallLimits()).ok());
}

TEST(ValidateSequenceTest, RefusesOneTokenMoreThanMaxLen) {
  ErrorDetail detail =
      Refusal(Tokens(std::vector<int32_t>(9, 1)), SmallLimits(),
              "the input has 9 tokens; this model takes at most 8");
  EXPECT_EQ(detail.reason, "INPUT_TOO_LONG");
  EXPECT_EQ(detail.metadata["token_count"], "9");
  EXPECT_EQ(detail.metadata["max_tokens"], "8");
}

TEST(ValidateSequenceTest, RefusesNoTokens) {
  EXPECT_EQ(Refusal(Tokens({}), SmallLimits(), "no tokens").reason,
            "EMPTY_INPUT");
}

TEST(ValidateSequenceTest, NamesTheFirstIdOutsideItsTable) {
  ErrorDetail detail = Refusal(Tokens({0, 99, 100, 101}), SmallLimits(),
                               "token id 100 at index 2");
  EXPECT_EQ(detail.reason, "TOKEN_ID_OUT_OF_RANGE");
  EXPECT_EQ(detail.metadata["index"], "2");
  EXPECT_EQ(detail.metadata["id"], "100");
  EXPECT_EQ(detail.metadata["limit"], "100");
  EXPECT_EQ(Refusal(Tokens({-1}), SmallLimits(), "token id -1").reason,
            "TOKEN_ID_OUT_OF_RANGE");
}

TEST(ValidateSequenceTest, RefusesSegmentsOutsideTheirTable) {
  TokenSequence sequence = Tokens({1, 2});
  sequence.segment_ids = {1, 2};
  EXPECT_EQ(Refusal(sequence, SmallLimits(), "segment id 2").reason,
            "SEGMENT_ID_OUT_OF_RANGE");
}

TEST(ValidateSequenceTest, TakesOnlySegmentZeroWithoutSegments) {
  IdLimits limits = SmallLimits();
  limits.segment_rows = 0;
  TokenSequence sequence = Tokens({1});
  sequence.segment_ids = {0};
  EXPECT_TRUE(ValidateSequence(sequence, limits).ok());
  sequence.segment_ids = {1};
  ErrorDetail detail =
      Refusal(sequence, limits,
              "segment id 1 at index 0; the model has no segments: only 0");
  EXPECT_EQ(detail.reason, "SEGMENT_ID_OUT_OF_RANGE");
  EXPECT_EQ(detail.metadata["limit"], "1");
}

TEST(ValidateSequenceTest, RefusesPositionsOutsideTheirTable) {
  TokenSequence sequence = Tokens({1, 2});
  sequence.position_ids = {9, 10};
  EXPECT_EQ(Refusal(sequence, SmallLimits(), "position id 10").reason,
            "POSITION_ID_OUT_OF_RANGE");
}

TEST(ValidateSequenceTest, RefusesListsOfDifferentLengths) {
  TokenSequence sequence = Tokens({1, 2});
  sequence.segment_ids = {0};
  EXPECT_EQ(Refusal(sequence, SmallLimits(), "1 values for 2").reason,
            "SEGMENT_IDS_LENGTH");
  sequence.segment_ids.clear();
  sequence.position_ids = {0, 1, 2};
  EXPECT_EQ(Refusal(sequence, SmallLimits(), "3 values for 2").reason,
            "POSITION_IDS_LENGTH");
}

// As the RoBERTa family counts: padding inside an input has the row of its
// id and counts for no other.
TEST(PackedBatchTest, CountsPositionsOverTheTokensThatAreNoPadding) {
  IdLimits limits = SmallLimits();
  limits.position_offset = 2;
  PackedBatch batch;
  batch.Append(Tokens({7, 1, 8, 1, 1, 9}), limits);
  EXPECT_THAT(batch.position_ids, ElementsAre(2, 1, 3, 1, 1, 4));
  limits.position_offset = 0;
  batch.Clear();
  batch.Append(Tokens({1, 0, 1}), limits);
  EXPECT_THAT(batch.position_ids, ElementsAre(0, 1, 2));
}

TEST(PackedBatchTest, LaysSequencesEndToEnd) {
  IdLimits limits = SmallLimits();
  limits.position_offset = 2;
  PackedBatch batch;
  batch.Append(Tokens({7, 8}), limits);
  TokenSequence explicit_ids = Tokens({9, 10, 11});
  explicit_ids.segment_ids = {0, 1, 1};
  explicit_ids.position_ids = {5, 4, 3};
  batch.Append(explicit_ids, limits);
  EXPECT_THAT(batch.token_ids, ElementsAre(7, 8, 9, 10, 11));
  EXPECT_THAT(batch.segment_ids, ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(batch.position_ids, ElementsAre(2, 3, 5, 4, 3));
  EXPECT_THAT(batch.cu_seqlens, ElementsAre(0, 2, 5));
  EXPECT_EQ(batch.max_seqlen, 3);
  EXPECT_EQ(batch.num_tokens(), 5);
  EXPECT_EQ(batch.num_sequences(), 2);
  EXPECT_TRUE(ValidateBatch(batch, limits).ok());
}

TEST(PackedBatchTest, IsEmptyAfterClear) {
  PackedBatch batch;
  batch.Append(Tokens({7, 8}), SmallLimits());
  batch.Clear();
  EXPECT_EQ(batch.num_tokens(), 0);
  EXPECT_EQ(batch.num_sequences(), 0);
  EXPECT_EQ(batch.max_seqlen, 0);
}

class ValidateBatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    batch_.Append(Tokens({1, 2}), SmallLimits());
    batch_.Append(Tokens({3}), SmallLimits());
    ASSERT_TRUE(ValidateBatch(batch_, SmallLimits()).ok());
  }
  void ExpectRefused() const {
    EXPECT_EQ(ValidateBatch(batch_, SmallLimits()).code(),
              absl::StatusCode::kInternal);
  }
  PackedBatch batch_;
};

TEST_F(ValidateBatchTest, RefusesAnEmptySequence) {
  batch_.cu_seqlens = {0, 2, 2, 3};
  ExpectRefused();
}

TEST_F(ValidateBatchTest, RefusesEndsThatDoNotMeetTheTokens) {
  batch_.cu_seqlens = {0, 2};
  ExpectRefused();
}

TEST_F(ValidateBatchTest, RefusesAWrongLongestLength) {
  batch_.max_seqlen = 3;
  ExpectRefused();
}

TEST_F(ValidateBatchTest, RefusesMissingPositions) {
  batch_.position_ids.pop_back();
  ExpectRefused();
}

TEST_F(ValidateBatchTest, RefusesIdsOutsideTheirTables) {
  batch_.token_ids[1] = 100;
  ExpectRefused();
  batch_.token_ids[1] = 1;
  batch_.segment_ids[1] = 2;
  ExpectRefused();
  batch_.segment_ids[1] = 0;
  batch_.position_ids[1] = -1;
  ExpectRefused();
}

}  // namespace
}  // namespace encoderd
