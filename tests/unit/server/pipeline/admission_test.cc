#include "server/pipeline/admission.h"

#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

std::string Reason(const absl::Status& status) {
  const auto detail = GetErrorDetail(status);
  return detail ? detail->reason : "";
}

TEST(AdmissionTest, APermitGivesItsShareBackOnce) {
  Admission admission(100, 1000);
  {
    absl::StatusOr<Permit> first = admission.Admit(60, false, 500);
    ASSERT_THAT(first, IsOk());
    Permit moved = std::move(*first);
    Permit again = std::move(moved);
    EXPECT_EQ(admission.tokens(), 60);
    EXPECT_EQ(admission.bytes(), 500);
    again.Release();
    again.Release();
    EXPECT_EQ(admission.tokens(), 0);
    EXPECT_EQ(admission.bytes(), 0);
  }
  EXPECT_EQ(admission.tokens(), 0);
}

TEST(AdmissionTest, RefusesWhatDoesNotFitNextToTheOthersWithEveryNumber) {
  Admission admission(100, 1000);
  const auto held = admission.Admit(60, false, 0);
  const auto refused = admission.Admit(41, false, 0);
  ASSERT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  const auto detail = GetErrorDetail(refused.status());
  EXPECT_EQ(detail->reason, "QUEUE_FULL");
  EXPECT_EQ(detail->metadata.at("queued_tokens"), "60");
  EXPECT_EQ(detail->metadata.at("request_tokens"), "41");
  EXPECT_EQ(detail->metadata.at("limit"), "100");
  EXPECT_THAT(admission.Admit(40, false, 0), IsOk());
}

TEST(AdmissionTest, ACallerWithALimitIsHeldToItAndLeavesRoomForOthers) {
  Admission admission(100, 1000);
  const Caller limited = {1, 50};
  const Caller other = {2, 100};
  auto held = admission.Admit(40, false, 0, limited);
  ASSERT_THAT(held, IsOk());
  const auto refused = admission.Admit(11, false, 0, limited);
  ASSERT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  const auto detail = GetErrorDetail(refused.status());
  EXPECT_EQ(detail->reason, "QUEUE_FULL");
  EXPECT_EQ(detail->metadata.at("queued_tokens"), "40");
  EXPECT_EQ(detail->metadata.at("limit"), "50");
  EXPECT_THAT(admission.Admit(60, false, 0, other), IsOk());
  // What is settled counts, not the estimate.
  EXPECT_THAT(held->Settle(20), IsOk());
  auto more = admission.Admit(30, false, 0, limited);
  ASSERT_THAT(more, IsOk());
  EXPECT_FALSE(held->Settle(21).ok());
  more->Release();
  EXPECT_THAT(held->Settle(50), IsOk());
  held->Release();
  // An estimate is cut to the limit; a true count above it never fits.
  EXPECT_EQ(admission.Admit(5000, true, 0, limited)->tokens(), 50);
  EXPECT_EQ(Reason(admission.Admit(51, false, 0, limited).status()),
            "REQUEST_TOO_LARGE");
  EXPECT_EQ(admission.tokens(), 0);
}

TEST(AdmissionTest, BoundsBytesAsWellAsTokens) {
  Admission admission(100, 1000);
  const auto held = admission.Admit(1, false, 700);
  const auto refused = admission.Admit(1, false, 301);
  ASSERT_EQ(Reason(refused.status()), "QUEUE_FULL");
  EXPECT_EQ(GetErrorDetail(refused.status())->metadata.at("queued_bytes"),
            "700");
  EXPECT_EQ(Reason(admission.Admit(1, false, 1001).status()),
            "REQUEST_TOO_LARGE");
}

TEST(AdmissionTest, WhatWouldNotFitIntoAnEmptyQueueIsTooLargeUnlessItIsAGuess) {
  Admission admission(100, 1000);
  EXPECT_EQ(Reason(admission.Admit(101, false, 0).status()),
            "REQUEST_TOO_LARGE");
  absl::StatusOr<Permit> guess = admission.Admit(5000, true, 0);
  ASSERT_THAT(guess, IsOk());
  EXPECT_EQ(admission.tokens(), 100);
  EXPECT_THAT(guess->Settle(30), IsOk());
  EXPECT_EQ(admission.tokens(), 30);
}

TEST(AdmissionTest, SettlingTradesTheEstimateForTheTruthAndFreesTheBytes) {
  Admission admission(100, 1000);
  absl::StatusOr<Permit> permit = admission.Admit(10, true, 400);
  ASSERT_THAT(permit->Settle(50), IsOk());
  EXPECT_EQ(admission.tokens(), 50);
  EXPECT_EQ(admission.bytes(), 0);
  absl::StatusOr<Permit> other = admission.Admit(10, true, 400);
  EXPECT_EQ(Reason(other->Settle(51)), "QUEUE_FULL");
  EXPECT_EQ(admission.tokens(), 60);  // a refused permit is as it was
  EXPECT_EQ(Reason(other->Settle(101)), "REQUEST_TOO_LARGE");
  EXPECT_THAT(other->Settle(1), IsOk());
  EXPECT_EQ(admission.tokens(), 51);
}

TEST(AdmissionTest, AssigningOverAPermitReleasesTheOldOne) {
  Admission admission(100, 1000);
  Permit permit = *admission.Admit(60, false, 1);
  permit = Permit();
  EXPECT_EQ(admission.tokens(), 0);
  permit = *admission.Admit(100, false, 1);
  EXPECT_EQ(admission.tokens(), 100);
}

}  // namespace
}  // namespace encoderd
