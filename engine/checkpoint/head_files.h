// The files of sentence-transformers' modules after pooling: their config.json
// and model.safetensors. Errors: those of File::Open, DATA_LOSS for a bad file
// (name, value, limit), UNIMPLEMENTED for a setting by name.
#ifndef ENCODERD_ENGINE_CHECKPOINT_HEAD_FILES_H_
#define ENCODERD_ENGINE_CHECKPOINT_HEAD_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/head.h"

namespace encoderd {

// config.json of a module in `path` below `folder`. A Normalize module may have
// none, and no folder (path "").
absl::StatusOr<HeadModule> ReadNormalizeConfig(const std::string& folder,
                                               const std::string& path);
absl::StatusOr<HeadModule> ReadDenseConfig(const std::string& folder,
                                           const std::string& path);
absl::StatusOr<HeadModule> ReadLayerNormConfig(const std::string& folder,
                                               const std::string& path);

// Each module takes what the one before it gives, the first one hidden_size
// values: fills in the widths of modules that fit any, DATA_LOSS for one that
// does not.
absl::Status FitHead(int32_t hidden_size, std::vector<HeadModule>* modules);

struct HeadCheckpoint {
  std::unique_ptr<const Head> head;  // null: there are no modules
  std::vector<std::string> sha256;   // of each weight file, lower-case hex
};

// Reads the weights: linear.weight, linear.bias; norm.weight, norm.bias.
absl::StatusOr<HeadCheckpoint> ReadHead(const std::string& folder,
                                        const std::vector<HeadModule>& modules);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_HEAD_FILES_H_
