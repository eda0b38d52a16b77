// Which max_len a model may be loaded with.
#include <gtest/gtest.h>

#include <memory>

#include "engine/model.h"
#include "tests/support/random_checkpoint.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

class ModelLengthsTest : public testing::Test {
 protected:
  void SetUp() override {
    WriteCheckpoint(CheckpointSpecOf("positions100"), folder_.path());
  }

  absl::StatusOr<std::shared_ptr<const Model>> Load(int32_t max_len = 0) {
    return Model::Load(folder_.path(), {.device = "cpu", .max_len = max_len});
  }

  const TempFolder folder_;
};

TEST_F(ModelLengthsTest, TheFlagLowersMaxLenAndCannotPassTheTable) {
  EXPECT_EQ(Load(50).value()->info().limits.max_len, 50);
  EXPECT_THAT(Load(101), IsError(kInvalidArgument, "max_len is 101"));
  EXPECT_THAT(Load(4), IsOk());
  EXPECT_THAT(Load(3), IsError(kInvalidArgument,
                               "max_len is 3; special tokens alone take 3 in a "
                               "pair"));
}

TEST_F(ModelLengthsTest, NamesTheFileThatLeavesNoRoomForSpecialTokens) {
  folder_.Write("sentence_bert_config.json", R"({"max_seq_length":1})");
  EXPECT_THAT(Load(),
              IsError(kInvalidArgument,
                      "max_len is 1, by max_seq_length in "
                      "sentence_bert_config.json; special tokens alone take "
                      "3 in a pair"));
  EXPECT_THAT(Load(4), IsOk());
}

}  // namespace
}  // namespace encoderd
