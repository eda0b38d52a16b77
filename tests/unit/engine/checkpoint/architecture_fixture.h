// A folder with one of the random checkpoints, its config.json and its tensors
// changed as a test wants them.
#ifndef ENCODERD_TESTS_UNIT_ENGINE_CHECKPOINT_ARCHITECTURE_FIXTURE_H_
#define ENCODERD_TESTS_UNIT_ENGINE_CHECKPOINT_ARCHITECTURE_FIXTURE_H_

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/checkpoint/model_config.h"
#include "engine/io/json.h"
#include "tests/support/random_checkpoint.h"
#include "tests/support/temp_folder.h"

namespace encoderd {

class ArchitectureTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      const std::vector<TensorToWrite>& tensors) {
    WriteWeights(tensors, 1, folder_.path());
    const auto config = LoadModelConfig(folder_.path(), 0);
    if (!config.ok()) return config.status();
    return CheckpointReader::Open(folder_.path(), *config);
  }

  // The config of a checkpoint with other or further members.
  absl::StatusOr<ModelConfig> Config(const std::string& name,
                                     const Json& members) {
    WriteCheckpoint(CheckpointSpecOf(name), folder_.path());
    std::ifstream file(folder_.Path("config.json"));
    Json config = Json::parse(file);
    config.update(members);
    folder_.Write("config.json", config.dump());
    return LoadModelConfig(folder_.path(), 0);
  }

  const TempFolder folder_;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_UNIT_ENGINE_CHECKPOINT_ARCHITECTURE_FIXTURE_H_
