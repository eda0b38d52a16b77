#include "engine/device/cpu/weight_memory.h"

#include <sys/mman.h>

#include <utility>

namespace encoderd {
namespace cpu {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

// A part of a buffer, which lives as long as the part.
std::shared_ptr<float> PartOf(std::shared_ptr<const AlignedBuffer> buffer,
                              int64_t first_byte) {
  if (buffer->data() == nullptr) return nullptr;
  float* const part =
      buffer->floats() + first_byte / static_cast<int64_t>(sizeof(float));
  return std::shared_ptr<float>(std::move(buffer), part);
}

}  // namespace

WeightMemory::WeightMemory(int64_t bytes)
    : reserved_(std::make_shared<AlignedBuffer>(bytes, kHugePage)) {
  if (reserved_->data() == nullptr) return;  // each Take on its own
  size_ = bytes;
#ifdef MADV_HUGEPAGE
  // Only a wish: on failure the pages are small.
  madvise(reserved_->data(), bytes, MADV_HUGEPAGE);
#endif
}

std::shared_ptr<float> WeightMemory::Take(int64_t bytes) {
  if (bytes > size_ - taken_)
    return PartOf(std::make_shared<const AlignedBuffer>(bytes), 0);
  const int64_t first = taken_;
  taken_ += bytes;
  return PartOf(reserved_, first);
}

}  // namespace cpu
}  // namespace encoderd
