// out [T,H] = LayerNorm(token row + position row + segment row), or the sum
// itself where there is no norm.
//
// A warp gathers a row of each table into registers, a block four tokens.
// Bytes moved: up to 3 T H elements read (the small tables from L2), T H
// written.
#include "engine/device/cuda/kernels/elements.h"
#include "engine/device/cuda/kernels/layer_norm.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {
namespace {

template <typename T, int kChunks>
ENCODERD_KERNEL(kNormThreads)
EmbedTokensKernel(EmbedOp op) {
  AwaitEarlierKernels();
  const int64_t row =
      static_cast<int64_t>(BlockX()) * kRowsPerBlock + ThreadIndex() / 32;
  if (row >= op.out.rows) return;  // whole warps
  const auto hidden = static_cast<int32_t>(op.out.cols);
  const auto row_of = [hidden](const void* table, int32_t id) {
    return static_cast<const T*>(table) + static_cast<int64_t>(id) * hidden;
  };
  const T* token = row_of(op.tables.token, op.batch.token_ids[row]);
  // Without a table it loads the token's row instead: a load without a branch.
  const T* position = token;
  const T* segment = token;
  const bool has_position = op.tables.position != nullptr;
  const bool has_segment = op.tables.segment != nullptr;
  if (has_position)
    position = row_of(op.tables.position, op.batch.position_ids[row]);
  if (has_segment)
    segment = row_of(op.tables.segment, op.batch.segment_ids[row]);
  float values[kChunks][8];
  if constexpr (kChunks * sizeof(T) <= 8) {  // three rows fit in registers
    const RowOf<kChunks, T> first = LoadRow<kChunks>(token, hidden);
    const RowOf<kChunks, T> second = LoadRow<kChunks>(position, hidden);
    const RowOf<kChunks, T> third = LoadRow<kChunks>(segment, hidden);
    Widen(first, values);
    if (has_position) AddRow(second, values);
    if (has_segment) AddRow(third, values);
  } else {
    Widen(LoadRow<kChunks>(token, hidden), values);
    if (has_position) AddRow(LoadRow<kChunks>(position, hidden), values);
    if (has_segment) AddRow(LoadRow<kChunks>(segment, hidden), values);
  }
  if (op.norm.gain != nullptr) NormaliseRow(hidden, op.norm, values);
  StoreRow(Narrowed<T>(values), hidden,
           static_cast<T*>(op.out.data) + row * hidden);
}

}  // namespace

int Start(const EmbedOp& op, const OpStream& stream) {
  if (op.out.rows == 0) return 0;
  LaunchShape shape;
  shape.blocks_x = (op.out.rows + kRowsPerBlock - 1) / kRowsPerBlock;
  shape.threads = kNormThreads;
  return WithElement(op.out.dtype, [&]<typename T>() {
    return WithChunks(op.out.cols, [&]<int kChunks>() {
      return Launch(EmbedTokensKernel<T, kChunks>, shape, stream, op);
    });
  });
}

}  // namespace cuda
}  // namespace encoderd
