#include "tests/golden/golden_model.h"

#include <cstdlib>
#include <utility>

#include "engine/checkpoint/checkpoint_reader.h"
#include "tests/support/random_checkpoint.h"

namespace encoderd {

std::vector<std::string> GoldenNames() {
  std::vector<std::string> names = {"minilm"};
  for (const CheckpointSpec& spec : AllCheckpointSpecs())
    names.push_back(spec.name);
  return names;
}

absl::StatusOr<std::string> GoldenFolder(const std::string& name,
                                         const TempFolder& folder) {
  if (name != "minilm") {
    WriteCheckpoint(CheckpointSpecOf(name), folder.path());
    return folder.path();
  }
  const char* model = std::getenv("ENCODERD_TEST_MODEL");
  if (model != nullptr) return std::string(model);
  return absl::NotFoundError(
      "this test needs all-MiniLM-L6-v2: run deploy/fetch-model.sh and set "
      "ENCODERD_TEST_MODEL to the folder that it prints");
}

absl::StatusOr<GoldenModel> OpenGoldenModel(const std::string& folder,
                                            std::unique_ptr<Device> device) {
  // All the position table's rows: goldens reach to its end.
  absl::StatusOr<ModelConfig> config = LoadModelConfig(folder, 0);
  if (!config.ok()) return config.status();
  config = LoadModelConfig(
      folder, config->max_position_embeddings - config->position_offset);
  if (!config.ok()) return config.status();
  const auto checkpoint = CheckpointReader::Open(folder, *config);
  if (!checkpoint.ok()) return checkpoint.status();

  GoldenModel model;
  model.config = *std::move(config);
  model.limits = model.config.limits();
  auto encoder =
      Encoder::Build(std::move(device), model.config, checkpoint->get());
  if (!encoder.ok()) return encoder.status();
  model.encoder = *std::move(encoder);
  auto session = model.encoder->NewSession({.max_batch_tokens = 1024});
  if (!session.ok()) return session.status();
  model.session = *std::move(session);
  return model;
}

}  // namespace encoderd
