#include "server/pipeline/tokenizer_lane.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace encoderd {
namespace {

constexpr int64_t kFull = TokenizerLane::kTurnBytes;

// A call that is only told apart by its id.
std::shared_ptr<Call> NewCall(uint64_t id, uint64_t caller) {
  PipelineRequest request;
  request.caller.id = caller;
  return std::make_shared<Call>(id, std::move(request), nullptr, nullptr,
                                nullptr, absl::UnixEpoch());
}

void Add(TokenizerLane* lane, uint64_t id, uint64_t caller,
         const std::vector<int64_t>& bytes) {
  TokenizerLane::Job job{NewCall(id, caller), {}};
  for (const int64_t part : bytes) {
    job.parts.push_back({{static_cast<int32_t>(job.parts.size()), 1}, part});
  }
  lane->Add(std::move(job));
}

// Takes at most `slices`; the ids of their calls.
std::vector<uint64_t> Take(TokenizerLane* lane, int slices = 1000) {
  std::vector<uint64_t> ids;
  std::shared_ptr<Call> call;
  Slice slice;
  while (slices-- > 0 && !lane->empty()) {
    lane->Take(&call, &slice);
    ids.push_back(call->id);
  }
  return ids;
}

using Ids = std::vector<uint64_t>;

TEST(TokenizerLaneTest, ANewCallerWaitsForOneTurnOfEachOther) {
  TokenizerLane lane;
  for (uint64_t id = 10; id < 1010; ++id) Add(&lane, id, 1, {kFull});
  for (uint64_t id = 2000; id < 3000; ++id) Add(&lane, id, 2, {kFull});
  EXPECT_EQ(Take(&lane, 5), (Ids{10, 2000, 11, 2001, 12}));
  Add(&lane, 3000, 3, {kFull});
  EXPECT_EQ(Take(&lane, 4), (Ids{2002, 13, 3000, 2003}));
}

TEST(TokenizerLaneTest, ATurnHasSmallSlicesUpToItsBytes) {
  TokenizerLane lane;
  for (uint64_t id = 10; id < 16; ++id) Add(&lane, id, 1, {kFull / 2 - 1});
  for (uint64_t id = 20; id < 22; ++id) Add(&lane, id, 2, {4 * kFull});
  EXPECT_EQ(Take(&lane), (Ids{10, 11, 12, 20, 13, 14, 15, 21}));
}

TEST(TokenizerLaneTest, ATurnBeginsWithAllOfItsBytes) {
  TokenizerLane lane;
  Add(&lane, 10, 1, {kFull - 1});
  Add(&lane, 20, 2, {1});
  Add(&lane, 21, 2, {1});
  Add(&lane, 30, 3, {1});
  // The first caller leaves before its bytes are used up.
  EXPECT_EQ(Take(&lane), (Ids{10, 20, 21, 30}));
}

TEST(TokenizerLaneTest, CallsOfACallerTakeTurnsOneSliceEach) {
  TokenizerLane lane;
  Add(&lane, 10, 1, {kFull, kFull, kFull});
  Add(&lane, 11, 1, {kFull});
  Add(&lane, 20, 2, {1, 1, 1});
  Add(&lane, 21, 2, {1});
  EXPECT_EQ(Take(&lane), (Ids{10, 20, 21, 20, 20, 11, 10, 10}));
}

TEST(TokenizerLaneTest, SlicesOfACallComeInOrderAndTheLastReleasesIt) {
  TokenizerLane lane;
  std::shared_ptr<Call> call = NewCall(1, 1);
  const std::weak_ptr<Call> weak = call;
  lane.Add({std::move(call), {{{0, 2}, kFull}, {{2, 3}, 1}}});
  Slice slice;
  lane.Take(&call, &slice);
  EXPECT_EQ(slice.first, 0);
  EXPECT_EQ(slice.count, 2);
  lane.Take(&call, &slice);
  EXPECT_EQ(slice.first, 2);
  EXPECT_EQ(slice.count, 3);
  EXPECT_TRUE(lane.empty());
  call.reset();
  EXPECT_TRUE(weak.expired());
}

TEST(TokenizerLaneTest, TheLastAddedIsRemovedAgain) {
  TokenizerLane lane;
  Add(&lane, 10, 1, {kFull});
  lane.RemoveLast(1);
  EXPECT_TRUE(lane.empty());
  Add(&lane, 11, 1, {1});
  Add(&lane, 20, 2, {1});
  Add(&lane, 12, 1, {1});
  lane.RemoveLast(1);
  Add(&lane, 30, 3, {1});
  lane.RemoveLast(3);
  Add(&lane, 21, 2, {1});
  EXPECT_EQ(Take(&lane), (Ids{11, 20, 21}));
}

}  // namespace
}  // namespace encoderd
