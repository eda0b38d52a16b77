// Owner of memory aligned to a cache line or more, not initialized.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_ALIGNED_BUFFER_H_
#define ENCODERD_ENGINE_DEVICE_CPU_ALIGNED_BUFFER_H_

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace encoderd {
namespace cpu {

class AlignedBuffer {
 public:
  static constexpr int64_t kAlignment = 64;

  AlignedBuffer() = default;
  // alignment: a power of two. data() is null when the memory cannot be had.
  explicit AlignedBuffer(int64_t bytes, int64_t alignment = kAlignment)
      : data_(std::aligned_alloc(
            alignment, (bytes + alignment) / alignment * alignment)) {}

  void* data() const { return data_.get(); }
  float* floats() const { return static_cast<float*>(data_.get()); }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> data_;
};

// RESOURCE_EXHAUSTED where memory cannot be had: "no memory for BYTES bytes of
// WHAT".
absl::Status Allocate(int64_t bytes, absl::string_view what,
                      AlignedBuffer* buffer);

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_ALIGNED_BUFFER_H_
