#include "server/rpc/serving_state.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace encoderd {
namespace {

using Phase = ServingState::Phase;

std::string Reason(const ServingState& state) {
  const absl::Status status = state.Admit();
  if (status.ok()) return "";
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  return GetErrorDetail(status)->reason;
}

TEST(ServingStateTest, AdmitsOnlyWhileServing) {
  ServingState state;
  EXPECT_EQ(Reason(state), "LOADING");
  EXPECT_TRUE(state.Advance(Phase::kServing));
  EXPECT_EQ(Reason(state), "");
  EXPECT_TRUE(state.Advance(Phase::kDraining));
  EXPECT_EQ(Reason(state), "DRAINING");
}

TEST(ServingStateTest, NeverGoesBack) {
  ServingState state;
  EXPECT_TRUE(state.Advance(Phase::kDraining));
  EXPECT_FALSE(state.Advance(Phase::kServing));
  EXPECT_EQ(Reason(state), "DRAINING");
  EXPECT_TRUE(state.Advance(Phase::kDeviceLost));
  EXPECT_FALSE(state.Advance(Phase::kDraining));
  EXPECT_EQ(state.phase(), Phase::kDeviceLost);
}

TEST(ServingStateTest, LoadingIsAbandonedOnlyBeforeServing) {
  ServingState loading;
  EXPECT_TRUE(loading.AbandonLoading());
  EXPECT_FALSE(loading.Advance(Phase::kServing));
  ServingState serving;
  serving.Advance(Phase::kServing);
  EXPECT_FALSE(serving.AbandonLoading());
  EXPECT_EQ(serving.phase(), Phase::kServing);
}

TEST(ServingStateTest, CountsCallsInFlight) {
  ServingState state;
  state.Enter();
  state.Enter();
  state.Leave();
  EXPECT_EQ(state.in_flight(), 1);
}

TEST(ServingStateTest, ARefusedCallIsNotOwedAnAnswer) {
  ServingState state;
  state.Enter();
  state.Enter();
  state.Refuse();
  EXPECT_EQ(state.in_flight(), 2);
  EXPECT_EQ(state.unanswered(), 1);
  state.Leave();
  EXPECT_EQ(state.unanswered(), 0);
  state.Leave(/*refused=*/true);
  EXPECT_EQ(state.in_flight(), 0);
  EXPECT_EQ(state.unanswered(), 0);
}

}  // namespace
}  // namespace encoderd
