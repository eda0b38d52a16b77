#include "engine/digest_thread.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "engine/checkpoint/model_config.h"
#include "tests/support/random_checkpoint.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

class DigestThreadTest : public testing::Test {
 protected:
  void SetUp() override {
    WriteCheckpoint(CheckpointSpecOf("positions100"), folder_.path());
    const ModelConfig config = LoadModelConfig(folder_.path(), 0).value();
    reader_ = CheckpointReader::Open(folder_.path(), config).value();
  }

  const TempFolder folder_;
  std::unique_ptr<CheckpointReader> reader_;
};

TEST_F(DigestThreadTest, GivesTheDigestWhileTheWeightsAreRead) {
  DigestThread digest(reader_.get());
  EXPECT_THAT(reader_->ReadOuter(), IsOk());
  LayerWeights layer;
  EXPECT_THAT(reader_->ReadLayer(0, &layer), IsOk());
  EXPECT_EQ(digest.Wait().value(), reader_->Sha256().value());
}

TEST_F(DigestThreadTest, SaysThatTheFileWasCut) {
  ASSERT_EQ(::truncate(folder_.Path("model.safetensors").c_str(), 20000), 0);
  DigestThread digest(reader_.get());
  EXPECT_THAT(digest.Wait(),
              IsError(absl::StatusCode::kDataLoss, "ends at byte"));
}

}  // namespace
}  // namespace encoderd
