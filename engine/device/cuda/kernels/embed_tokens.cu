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
EmbedTokensKernel(EmbedTokensArgs args) {
  AwaitEarlierKernels();
  const int64_t row =
      static_cast<int64_t>(BlockX()) * kRowsPerBlock + ThreadIndex() / 32;
  if (row >= args.rows) return;  // whole warps
  const int32_t hidden = args.hidden;
  const auto row_of = [hidden](const void* table, int32_t id) {
    return static_cast<const T*>(table) + static_cast<int64_t>(id) * hidden;
  };
  const T* token = row_of(args.token, args.token_ids[row]);
  // Without a table the token's row stands in: a load that no branch delays.
  const T* position = token;
  const T* segment = token;
  if (args.position) position = row_of(args.position, args.position_ids[row]);
  if (args.segment) segment = row_of(args.segment, args.segment_ids[row]);
  float values[kChunks][8];
  if constexpr (kChunks * sizeof(T) <= 8) {  // three rows fit in registers
    const RowOf<kChunks, T> first = LoadRow<kChunks>(token, hidden);
    const RowOf<kChunks, T> second = LoadRow<kChunks>(position, hidden);
    const RowOf<kChunks, T> third = LoadRow<kChunks>(segment, hidden);
    Widen(first, values);
    if (args.position) AddRow(second, values);
    if (args.segment) AddRow(third, values);
  } else {
    Widen(LoadRow<kChunks>(token, hidden), values);
    if (args.position) AddRow(LoadRow<kChunks>(position, hidden), values);
    if (args.segment) AddRow(LoadRow<kChunks>(segment, hidden), values);
  }
  if (args.norm.gain != nullptr) NormaliseRow(hidden, args.norm, values);
  StoreRow(Narrowed<T>(values), hidden,
           static_cast<T*>(args.out) + row * hidden);
}

}  // namespace

int EmbedTokens(const EmbedTokensArgs& args, const OpStream& stream) {
  if (args.rows == 0) return 0;
  LaunchShape shape;
  shape.blocks_x = (args.rows + kRowsPerBlock - 1) / kRowsPerBlock;
  shape.threads = kNormThreads;
  return WithElement(args.element, [&]<typename T>() {
    return WithChunks(args.hidden, [&]<int kChunks>() {
      return Launch(EmbedTokensKernel<T, kChunks>, shape, stream, args);
    });
  });
}

}  // namespace cuda
}  // namespace encoderd
