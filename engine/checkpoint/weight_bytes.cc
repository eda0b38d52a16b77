#include "engine/checkpoint/weight_bytes.h"

#include <exception>

#include "absl/status/statusor.h"
#include "engine/base/head.h"
#include "engine/checkpoint/checkpoint_files.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/sentence_modules.h"

namespace encoderd {
namespace {

absl::StatusOr<int64_t> BytesIn(const std::string& folder,
                                const std::string& subfolder) {
  const absl::StatusOr<CheckpointFiles> files =
      CheckpointFiles::Open(folder, subfolder);
  if (!files.ok()) return files.status();
  int64_t bytes = 0;
  for (const auto& [name, tensor] : files->tensors()) {
    bytes += tensor.entry->end - tensor.entry->begin;
  }
  return bytes;
}

absl::StatusOr<int64_t> BytesOfModules(const std::string& folder) {
  ModelConfig config;
  int64_t pooling_width = 0;
  const absl::Status status =
      ReadSentenceModules(folder, &config, &pooling_width);
  if (!status.ok()) return status;
  absl::StatusOr<int64_t> bytes = BytesIn(folder, config.transformer_folder);
  for (const HeadModule& module : config.head) {
    if (!bytes.ok()) return bytes;
    if (module.kind == HeadModule::Kind::kNormalize) continue;
    const absl::StatusOr<int64_t> more = BytesIn(folder, module.folder);
    if (!more.ok()) return more;
    *bytes += *more;
  }
  return bytes;
}

}  // namespace

int64_t WeightBytes(const std::string& folder) {
  try {
    return BytesOfModules(folder).value_or(0);
  } catch (const std::exception&) {
    return 0;  // Model::Load reports it
  }
}

}  // namespace encoderd
