// out [T,H] = LayerNorm(token row + position row + segment row), or the sum
// itself where there is no norm.
//
// A warp gathers a row of each table into registers, a block four tokens.
// Bytes moved: up to 3 T H elements read (the small tables from L2), T H
// written.
#include "engine/device/cuda/elements.h"
#include "engine/device/cuda/layer_norm.h"
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
  const auto table_row = [hidden](const void* table, int32_t id) {
    return static_cast<const T*>(table) + static_cast<int64_t>(id) * hidden;
  };
  float values[kChunks][8] = {};
  AddRow(table_row(args.token, args.token_ids[row]), hidden, values);
  if (args.position != nullptr)
    AddRow(table_row(args.position, args.position_ids[row]), hidden, values);
  if (args.segment != nullptr)
    AddRow(table_row(args.segment, args.segment_ids[row]), hidden, values);
  T* out = static_cast<T*>(args.out) + row * hidden;
  if (args.norm.gain == nullptr) {
    StoreRow(values, hidden, out);
  } else {
    NormaliseRow(values, hidden, args.norm, out);
  }
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
