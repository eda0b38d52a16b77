// Whose text is tokenized next when several callers wait: with one tokenizer
// thread the order of the answers is the order of the turns.
#include <string>
#include <vector>

#include "tests/unit/server/pipeline/pipeline_harness.h"

namespace encoderd {
namespace {

constexpr uint64_t kFlood = 1;
constexpr uint64_t kOther = 2;

class PipelineTurnsTest : public ::testing::Test {
 protected:
  PipelineTurnsTest() {
    harness_.tokenizer.CloseGate();
    Submit(0, {"block"});
    EXPECT_TRUE(harness_.tokenizer.WaitForTextsAtGate(1));
  }

  // Waits behind the gate; answered by the tokenizer thread.
  void Submit(uint64_t caller, std::vector<std::string> texts) {
    PipelineRequest request = TextRequest(std::move(texts));
    request.ids_only.emplace();
    request.caller.id = caller;
    Submit(std::move(request));
  }
  void Submit(PipelineRequest request) {
    const uint64_t caller = request.caller.id;
    harness_.pipeline->Submit(
        std::move(request),
        [this, caller](const absl::StatusOr<PipelineResult>& result) {
          answered_.push_back(caller);
          reasons_.push_back(ReasonOf(result.status()));
        });
  }
  // The callers in the order of their answers, after the one at the gate.
  std::vector<uint64_t> Answered() {
    harness_.tokenizer.OpenGate();
    harness_.pipeline->WaitIdle(absl::InfiniteFuture());
    return {answered_.begin() + 1, answered_.end()};
  }

  std::vector<uint64_t> answered_;
  std::vector<std::string> reasons_;
  PipelineHarness harness_;
};

TEST_F(PipelineTurnsTest, ACallWaitsForOneOfAnotherCallerHoweverManyItHas) {
  for (int i = 0; i < 5; ++i) {
    // Tokenized to the end, then refused.
    PipelineRequest too_long = TextRequest({std::string(62 << 10, 'x')});
    too_long.caller.id = kFlood;
    Submit(std::move(too_long));
  }
  Submit(kOther, {"abc"});
  EXPECT_EQ(Answered(), (std::vector<uint64_t>{kFlood, kOther, kFlood, kFlood,
                                               kFlood, kFlood}));
  EXPECT_EQ(reasons_[1], "INPUT_TOO_LONG");
}

TEST_F(PipelineTurnsTest, SmallCallsOfACallerShareItsTurn) {
  for (int i = 0; i < 3; ++i) Submit(kFlood, {std::string(62 << 10, 'x')});
  for (int i = 0; i < 3; ++i) Submit(kOther, {"abc"});
  EXPECT_EQ(Answered(), (std::vector<uint64_t>{kFlood, kOther, kOther, kOther,
                                               kFlood, kFlood}));
}

TEST_F(PipelineTurnsTest, LargeTextsTakeTurnsByCallerToo) {
  for (int i = 0; i < 4; ++i) Submit(kFlood, {std::string(65 << 10, 'x')});
  Submit(kOther, {std::string(65 << 10, 'x')});
  EXPECT_EQ(Answered(),
            (std::vector<uint64_t>{kFlood, kOther, kFlood, kFlood, kFlood}));
}

}  // namespace
}  // namespace encoderd
