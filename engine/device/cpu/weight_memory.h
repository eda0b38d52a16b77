// The packed weights of a model in one piece of memory, of huge pages where the
// kernel grants them: every pass reads all weights once, and with pages of
// 4 KiB it waits for the addresses of each.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_WEIGHT_MEMORY_H_
#define ENCODERD_ENGINE_DEVICE_CPU_WEIGHT_MEMORY_H_

#include <cstdint>
#include <memory>

#include "engine/device/cpu/aligned_buffer.h"

namespace encoderd {
namespace cpu {

class WeightMemory {
 public:
  // Bytes come in multiples of this.
  static constexpr int64_t kAlignment = AlignedBuffer::kAlignment;

  WeightMemory() = default;  // nothing reserved
  // Room for `bytes`, which take no memory before they are written.
  explicit WeightMemory(int64_t bytes);

  // `bytes` of what is reserved, or where too little of it is left, a separate
  // buffer. Aligned to kAlignment, not initialized; may outlive this object.
  // Null: no memory.
  std::shared_ptr<float> Take(int64_t bytes);

 private:
  std::shared_ptr<const AlignedBuffer> reserved_;
  int64_t size_ = 0;
  int64_t taken_ = 0;
};

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_WEIGHT_MEMORY_H_
