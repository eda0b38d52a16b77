// Writing a small file so that readers see the old one or the new one, whole.
#ifndef ENCODERD_ENGINE_IO_WRITE_FILE_H_
#define ENCODERD_ENGINE_IO_WRITE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace encoderd {

// Replaces folder/name by `content`: written beside it, brought to the disk,
// renamed. `folder` is made where it is missing, not what it lies in. Of two
// processes that write at once the later one stays. PERMISSION_DENIED with the
// system's word for it; then nothing has changed. `name` is the caller's own
// and is not checked.
absl::Status WriteFileAtomically(const std::string& folder,
                                 const std::string& name,
                                 absl::string_view content);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_IO_WRITE_FILE_H_
