// Whether a path is a model's folder, and what to do where it is not: said
// before any file of it is read. Thread-safe: a pure function of the disk.
#ifndef ENCODERD_ENGINE_CHECKPOINT_MODEL_FOLDER_H_
#define ENCODERD_ENGINE_CHECKPOINT_MODEL_FOLDER_H_

#include <string>

#include "absl/status/status.h"

namespace encoderd {

// NOT_FOUND names `folder`, what it is instead (a model's name on a hub, a path
// that the shell did not expand, a file) and the remedy; so it does for a
// folder without config.json and modules.json. PERMISSION_DENIED if the folder
// cannot be seen; UNAVAILABLE if its file system does not answer.
absl::Status CheckModelFolder(const std::string& folder);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_MODEL_FOLDER_H_
