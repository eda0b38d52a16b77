// Products of bf16 by tiles: y [rows,out] = activation(x [rows,in] W^T + b) by
// TDPBF16PS, which multiplies 16 rows of 16 pairs by 16 pairs of 16 columns.
//
// Two tiles of rows and two of columns make four sums, so that each tile that
// is loaded serves two of them. A sum stays in its tile from the first of x's
// columns to the last, 32 at a time: neither the number of rows nor the panels
// of a call change its order, and so its bits.
//
// W is packed in panels of two tiles of outputs, [words][kTileColumns], whole
// panels of whole tiles: zeros fill the last ones. Columns of x after its last
// whole tile are copied, and zeros after them.
//
// Tiles: 0 to 3 sums, 4 and 5 of x, 6 and 7 of W; all are 64 bytes wide.
//   Configure(shapes)
//   Load<t>(from, stride)   each row, `stride` bytes from the one before
//   Zero<t>()
//   Dot<sum, x, w>()
//   Store<t>(to, stride)
// Constructed and destroyed in each call, whose thread keeps no tiles.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_TILE_KERNEL_H_
#define ENCODERD_ENGINE_DEVICE_CPU_TILE_KERNEL_H_

#include "engine/device/cpu/element_wise_kernel.h"
#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/pack_rows.h"
#include "engine/device/cpu/product_kernel.h"
#include "engine/device/cpu/simd.h"

namespace encoderd {
namespace cpu {
namespace ENCODERD_ISA {

constexpr int64_t kTile = 16;       // rows of a tile, 32-bit words of a row
constexpr int64_t kTileBytes = 64;  // of a row
constexpr int64_t kTileColumns = 2 * kTile;
constexpr int64_t kTilesRows = 2 * kTile;

struct TileShapes {
  uint8_t rows[8];  // of each tile; 0: it is not used
};

// Words of a row of `in` bf16, in whole tiles.
inline int64_t TileWords(int64_t in) {
  return (Words<BF16>(in) + kTile - 1) / kTile * kTile;
}

inline int64_t TilePackedFloats(int64_t in, int64_t out) {
  return (out + kTileColumns - 1) / kTileColumns * kTileColumns * TileWords(in);
}

inline void PackTiles(const float* weights, int64_t in, int64_t out,
                      float* packed, float* scratch) {
  auto* const rows = reinterpret_cast<uint16_t*>(scratch);
  const int64_t filled = Words<BF16>(in) * kTileColumns;
  const int64_t size = TileWords(in) * kTileColumns;
  for (int64_t first = 0; first < out; first += kTileColumns) {
    const int64_t count =
        out - first < kTileColumns ? out - first : kTileColumns;
    ToElements<BF16>(weights + first * in, count * in, rows);
    __builtin_memset(rows + count * in, 0, (kTileColumns - count) * in * 2);
    PackRows<BF16, kTileColumns / kLanes>(rows, in, kTileColumns, in, packed);
    __builtin_memset(packed + filled, 0, (size - filled) * 4);
    packed += size;
  }
}

// A tile's row of each row of x, where whole tiles leave some of its columns.
inline int64_t TileScratchBytes(int64_t rows, int64_t in, int64_t out) {
  return in % (2 * kTile) == 0 ? 0 : rows * kTileBytes;
}

// Up to kTilesRows rows of x.
struct TileRows {
  const char* x;
  int64_t stride;    // bytes
  int64_t whole;     // words of whole tiles
  const char* rest;  // the words after them, kTileBytes a row
};

// sums [rows,kTileColumns] = x W^T; both: of two tiles of rows, else of one.
template <bool kBoth, typename Tiles>
ENCODERD_INLINE void DotTiles(const TileRows& rows, const float* panel,
                              int64_t words, Tiles& tiles, float* sums) {
  constexpr int64_t kPanelBytes = kTileColumns * 4;
  tiles.template Zero<0>();
  tiles.template Zero<1>();
  if constexpr (kBoth) {
    tiles.template Zero<2>();
    tiles.template Zero<3>();
  }
  for (int64_t k = 0; k < words; k += kTile) {
    const bool whole = k < rows.whole;
    const char* const x = whole ? rows.x + k * 4 : rows.rest;
    const int64_t stride = whole ? rows.stride : kTileBytes;
    tiles.template Load<4>(x, stride);
    tiles.template Load<6>(panel + k * kTileColumns, kPanelBytes);
    tiles.template Load<7>(panel + k * kTileColumns + kTile, kPanelBytes);
    tiles.template Dot<0, 4, 6>();
    tiles.template Dot<1, 4, 7>();
    if constexpr (kBoth) {
      tiles.template Load<5>(x + kTile * stride, stride);
      tiles.template Dot<2, 5, 6>();
      tiles.template Dot<3, 5, 7>();
    }
  }
  tiles.template Store<0>(sums, kPanelBytes);
  tiles.template Store<1>(sums + kTile, kPanelBytes);
  if constexpr (kBoth) {
    tiles.template Store<2>(sums + kTile * kTileColumns, kPanelBytes);
    tiles.template Store<3>(sums + kTile * kTileColumns + kTile, kPanelBytes);
  }
}

template <typename Tiles>
void TileProduct(const PackedWeights& weights, const Matrix& x,
                 const Panels& panels, const Matrix& y, void* scratch) {
  const int64_t in = weights.in, out = weights.out, words = TileWords(in);
  const auto* const from = static_cast<const uint16_t*>(x.data);
  auto* const rest = static_cast<char*>(scratch);
  const int64_t whole = in / (2 * kTile) * (2 * kTile);
  for (int64_t r = 0; whole < in && r < x.rows; ++r) {
    __builtin_memset(rest + r * kTileBytes, 0, kTileBytes);
    __builtin_memcpy(rest + r * kTileBytes, from + r * in + whole,
                     (in - whole) * 2);
  }
  Tiles tiles;
  int64_t configured = 0;  // rows
  alignas(64) float sums[kTilesRows * kTileColumns];
  for (int64_t p = panels.first; p < panels.first + panels.count; ++p) {
    const int64_t column = p * kTileColumns;
    Panel panel = {};
    panel.weights = weights.packed + column * words;
    panel.bias = weights.bias + column;
    panel.columns = out - column < kTileColumns ? out - column : kTileColumns;
    panel.vectors = Vectors(panel.columns);
    for (int64_t r = 0; r < x.rows; r += kTilesRows) {
      const int64_t rows = x.rows - r < kTilesRows ? x.rows - r : kTilesRows;
      if (rows != configured) {
        const auto upper = static_cast<uint8_t>(rows < kTile ? rows : kTile);
        const auto lower = static_cast<uint8_t>(rows - upper);
        tiles.Configure(
            {{upper, upper, lower, lower, upper, lower, kTile, kTile}});
        configured = rows;
      }
      const TileRows block = {reinterpret_cast<const char*>(from + r * in),
                              in * 2, whole / 2, rest + r * kTileBytes};
      if (rows > kTile) {
        DotTiles<true>(block, panel.weights, words, tiles, sums);
      } else {
        DotTiles<false>(block, panel.weights, words, tiles, sums);
      }
      WithActivation<BF16>(weights.activation, [&](auto function) {
        auto* const to = static_cast<uint16_t*>(y.data) + r * out + column;
        for (int64_t t = 0; t < rows; ++t) {
          FinishRow<BF16>(function, sums + t * kTileColumns, nullptr, panel, 0,
                          to + t * out);
        }
      });
    }
  }
}

template <typename Tiles>
inline constexpr ProductKernels kTileProducts = {
    kTileColumns, /*prepare_quarters=*/0, TilePackedFloats,
    PackTiles,    TileProduct<Tiles>,     TileScratchBytes};

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_TILE_KERNEL_H_
