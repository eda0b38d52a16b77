// SHA256SUMS of a model folder: lines of "DIGEST  NAME" as `sha256sum` writes
// them. Where there is one, every file it names must be as it says.
#ifndef ENCODERD_ENGINE_IO_MANIFEST_H_
#define ENCODERD_ENGINE_IO_MANIFEST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace encoderd {

inline constexpr char kManifestName[] = "SHA256SUMS";

// How many files were found to be as the manifest says; 0 without a manifest.
// DATA_LOSS that names file and line: a digest that differs, a file that is
// not there, a line that is not of the form, an empty manifest, more than 1 MiB
// of it. Reads every named file once.
absl::StatusOr<int64_t> CheckManifest(const std::string& folder);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_IO_MANIFEST_H_
