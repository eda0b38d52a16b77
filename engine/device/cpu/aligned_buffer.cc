#include "engine/device/cpu/aligned_buffer.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace encoderd {
namespace cpu {

absl::Status Allocate(int64_t bytes, absl::string_view what,
                      AlignedBuffer* buffer) {
  AlignedBuffer memory(bytes);
  if (memory.data() == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", bytes, " bytes of ", what));
  }
  *buffer = std::move(memory);
  return absl::OkStatus();
}

}  // namespace cpu
}  // namespace encoderd
