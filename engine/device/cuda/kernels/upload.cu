// Copies a staged batch from pinned memory as an op, so that a graph contains
// it.
//
// A thread takes 16 bytes. Bytes moved: each once over the bus, and written
// once.
#include "engine/device/cuda/kernels/primitives.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int32_t kThreads = 128;

ENCODERD_KERNEL(kThreads)
UploadKernel(const uint16_t* from, int64_t count, uint16_t* to) {
  AwaitEarlierKernels();
  const int64_t i = static_cast<int64_t>(BlockX()) * kThreads + ThreadIndex();
  if (i < count) StoreVector8(LoadVector8(from + 8 * i), to + 8 * i);
}

}  // namespace

int Start(const UploadOp& op, const OpStream& stream) {
  const int64_t count = (op.bytes + 15) / 16;
  if (count == 0) return 0;
  LaunchShape shape;
  shape.blocks_x = (count + kThreads - 1) / kThreads;
  shape.threads = kThreads;
  return Launch(UploadKernel, shape, stream,
                static_cast<const uint16_t*>(op.from), count,
                static_cast<uint16_t*>(op.to));
}

}  // namespace cuda
}  // namespace encoderd
