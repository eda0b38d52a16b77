#include "engine/requested_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace encoderd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int32_t kLayers = 3;

PackedBatch Lengths(std::vector<int32_t> lengths) {
  PackedBatch batch;
  for (const int32_t length : lengths)
    batch.cu_seqlens.push_back(batch.cu_seqlens.back() + length);
  return batch;
}

SequenceOutput Pooled(Pooling pooling) {
  SequenceOutput output;
  output.pooling = pooling;
  output.layer = kLayers;  // has no meaning here
  return output;
}

SequenceOutput States(int32_t layer) {
  SequenceOutput output;
  output.kind = SequenceOutput::Kind::kStates;
  output.pooling = Pooling::kMean;  // has no meaning here
  output.layer = layer;
  return output;
}

std::vector<int32_t> NeededRows(const std::vector<int32_t>& lengths,
                                const std::vector<SequenceOutput>& outputs) {
  std::vector<int32_t> rows = {7};
  ListNeededRows(Lengths(lengths), outputs, kLayers, &rows);
  return rows;
}

TEST(RequestedOutputsTest, RefusesOutputsOfAnotherBatchOrModel) {
  const auto refusal = [](const std::vector<SequenceOutput>& outputs) {
    const absl::Status status = CheckOutputs(Lengths({4, 1}), outputs, kLayers);
    return status.ok() ? "none" : std::string(status.message());
  };
  EXPECT_EQ(refusal({States(kTableSum), States(kLayers)}), "none");
  EXPECT_EQ(refusal({States(0), Pooled(Pooling::kMax)}), "none");
  EXPECT_THAT(refusal({States(0)}), HasSubstr("2 sequences with 1 outputs"));
  for (const int32_t layer : {kTableSum - 1, kLayers + 1}) {
    EXPECT_THAT(refusal({States(0), States(layer)}),
                HasSubstr("this model has 0 to 3"));
  }
}

TEST(RequestedOutputsTest, NeedsTheLayersUpToTheHighest) {
  EXPECT_EQ(LayersNeeded({States(kTableSum)}, kLayers), 0);
  EXPECT_EQ(LayersNeeded({States(1), States(2), States(0)}, kLayers), 2);
  EXPECT_EQ(LayersNeeded({States(1), Pooled(Pooling::kCls)}, kLayers), kLayers);
}

TEST(RequestedOutputsTest, PlacesVectorsAndStatesBehindEachOther) {
  ModelSizes sizes;
  sizes.hidden_size = 10;
  sizes.embedding_size = 4;
  ForwardResult result;
  result.offsets = {3, 4};
  result.note = "of another pass";
  const std::vector<SequenceOutput> outputs = {
      States(1), Pooled(Pooling::kMean), States(kTableSum), States(0)};
  EXPECT_TRUE(WantsTableSum(outputs));
  EXPECT_FALSE(WantsTableSum({States(0), Pooled(Pooling::kCls)}));
  PlaceOutputs(Lengths({2, 5, 3, 1}), outputs, sizes, &result);
  EXPECT_THAT(result.offsets, ElementsAre(0, 20, 30, 42, 52));
  EXPECT_EQ(result.values.size(), 52u);
  EXPECT_EQ(result.note, "");
}

TEST(RequestedOutputsTest, ListsTheRowOfEachSequenceThatIsNeeded) {
  EXPECT_THAT(
      NeededRows({4, 6, 1}, {Pooled(Pooling::kCls), Pooled(Pooling::kLastToken),
                             Pooled(Pooling::kLastToken)}),
      ElementsAre(0, 5, 0));
  EXPECT_THAT(NeededRows({4, 6}, {States(kLayers - 1), Pooled(Pooling::kCls)}),
              ElementsAre(0, 0));
}

TEST(RequestedOutputsTest, ListsNoRowsWhereASequenceNeedsAllOfThem) {
  EXPECT_THAT(NeededRows({4, 6}, {Pooled(Pooling::kCls), States(kLayers)}),
              IsEmpty());
  for (const Pooling pooling : {Pooling::kMean, Pooling::kMax,
                                Pooling::kMeanSqrtLen, Pooling::kWeightedMean})
    EXPECT_THAT(NeededRows({4, 6}, {Pooled(Pooling::kCls), Pooled(pooling)}),
                IsEmpty());
  EXPECT_THAT(NeededRows({}, {}), IsEmpty());
}

}  // namespace
}  // namespace encoderd
