// What sentence-transformers stores with a transformer: modules.json and the
// files it names.
#ifndef ENCODERD_ENGINE_CHECKPOINT_SENTENCE_MODULES_H_
#define ENCODERD_ENGINE_CHECKPOINT_SENTENCE_MODULES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "engine/checkpoint/model_config.h"

namespace encoderd {

// Fills transformer_folder, pooling, head, normalize, prompts,
// default_prompt_name and warnings of *config from modules.json, the Pooling
// module's config.json and config_sentence_transformers.json. Without
// modules.json: mean pooling, not normalized, no prompts, and a warning.
// UNIMPLEMENTED for a module or a mode by name. *pooling_width: the hidden_size
// that the Pooling module expects; 0: says nothing.
absl::Status ReadSentenceModules(const std::string& folder, ModelConfig* config,
                                 int64_t* pooling_width);

// Whether there is a modules.json; errors of FileExists.
absl::StatusOr<bool> HasModules(const std::string& folder);

// "a/b", or "b" when `folder` is empty: names below the model folder.
std::string JoinName(const std::string& folder, const std::string& name);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_SENTENCE_MODULES_H_
