#include "engine/device/cpu/weight_memory.h"

#include <sys/mman.h>

namespace encoderd {
namespace cpu {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

}  // namespace

void WeightMemory::Reserve(int64_t bytes) {
  if (bytes == 0) return;
  const int64_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  reserved_ = AlignedBuffer(whole, kHugePage);
  if (reserved_.data() == nullptr) return;
  left_ = bytes;
  next_ = reserved_.floats();
#ifdef MADV_HUGEPAGE
  // Advice only: if it is refused, the pages stay small.
  madvise(reserved_.data(), whole, MADV_HUGEPAGE);
#endif
}

float* WeightMemory::Take(int64_t bytes) {
  if (bytes > left_) return separate_.emplace_back(bytes).floats();
  float* const taken = next_;
  next_ += bytes / static_cast<int64_t>(sizeof(float));
  left_ -= bytes;
  return taken;
}

}  // namespace cpu
}  // namespace encoderd
