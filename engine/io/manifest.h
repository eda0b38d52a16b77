// SHA256SUMS of a model folder: lines of "DIGEST  NAME" as `sha256sum` writes
// them. If it exists, every file that it names must match, and it must name
// every file that can change what is served: those that end in .json, .txt or
// .safetensors, at any depth. A file added later cannot be read unnoticed.
#ifndef ENCODERD_ENGINE_IO_MANIFEST_H_
#define ENCODERD_ENGINE_IO_MANIFEST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace encoderd {

inline constexpr char kManifestName[] = "SHA256SUMS";

// The number of files that match the manifest; 0 without a manifest. DATA_LOSS
// that names file and line: a digest that differs, a file that is
// not there, a file that should be listed and is not, a line that is not of
// the form, an empty manifest, more than 1 MiB of it, over 10,000 files in the
// folder. UNAVAILABLE and RESOURCE_EXHAUSTED, as File has them, if a file
// cannot be read now. Reads every named file once.
absl::StatusOr<int64_t> CheckManifest(const std::string& folder);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_IO_MANIFEST_H_
