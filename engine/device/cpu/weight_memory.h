// The packed weights of a model in one block, in huge pages where Linux grants
// them: every pass reads all weights once, and with pages of 4 KiB each costs a
// miss of the TLB.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_WEIGHT_MEMORY_H_
#define ENCODERD_ENGINE_DEVICE_CPU_WEIGHT_MEMORY_H_

#include <cstdint>
#include <vector>

#include "engine/device/cpu/aligned_buffer.h"

namespace encoderd {
namespace cpu {

class WeightMemory {
 public:
  // Bytes are multiples of this, and what is taken is aligned to it.
  static constexpr int64_t kAlignment = AlignedBuffer::kAlignment;

  WeightMemory() = default;
  WeightMemory(const WeightMemory&) = delete;
  WeightMemory& operator=(const WeightMemory&) = delete;

  // Once, before the first Take. Takes no memory before it is written; without
  // address space for it nothing is reserved.
  void Reserve(int64_t bytes);

  // Takes `bytes` from the reservation; if too little is left, allocates a
  // separate buffer. Not initialized; valid as long as this object. Null: no
  // memory.
  float* Take(int64_t bytes);

 private:
  AlignedBuffer reserved_;
  int64_t left_ = 0;
  float* next_ = nullptr;
  std::vector<AlignedBuffer> separate_;
};

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_WEIGHT_MEMORY_H_
