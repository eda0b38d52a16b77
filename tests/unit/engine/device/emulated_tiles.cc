#include "tests/unit/engine/device/emulated_tiles.h"

#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <cstring>

#define ENCODERD_ISA isa_emulated_amx
#include "engine/device/cpu/tile_kernel.h"
#include "tests/support/narrow.h"

namespace encoderd {
namespace cpu {
namespace isa_emulated_amx {
namespace {

void Expect(bool holds) {
  if (!holds) std::abort();
}

// Denormals are zeros, of inputs and of results.
float Flush(float value) {
  return std::fabs(value) < FLT_MIN ? std::copysign(0.0f, value) : value;
}

float Bf16Value(uint16_t bits) { return Flush(emulation::FromBf16(bits)); }

class EmulatedTiles {
 public:
  void Configure(const TileShapes& shapes) {
    for (int t = 0; t < 8; ++t) {
      Expect(shapes.rows[t] <= 16);
      tiles_[t] = {shapes.rows[t], false, {}};
    }
  }
  template <int kAt>
  void Load(const void* from, int64_t stride) {
    Tile& tile = Written<kAt>();
    for (int r = 0; r < tile.rows; ++r)
      std::memcpy(tile.words[r], static_cast<const char*>(from) + r * stride,
                  sizeof(tile.words[r]));
  }
  template <int kAt>
  void Zero() {
    std::memset(Written<kAt>().words, 0, sizeof(Tile::words));
  }
  template <int kAt>
  void Store(void* to, int64_t stride) const {
    const Tile& tile = Read<kAt>();
    for (int r = 0; r < tile.rows; ++r)
      std::memcpy(static_cast<char*>(to) + r * stride, tile.words[r],
                  sizeof(tile.words[r]));
  }
  // Even and odd values of a row have separate sums, added at its end.
  template <int kSum, int kX, int kW>
  void Dot() {
    const Tile& x = Read<kX>();
    const Tile& w = Read<kW>();
    Expect(Read<kSum>().rows == x.rows && w.rows == 16);
    Tile& sum = tiles_[kSum];
    for (int m = 0; m < x.rows; ++m) {
      float even[16] = {}, odd[16] = {};
      for (int k = 0; k < 16; ++k) {
        const uint32_t a = x.words[m][k];
        for (int n = 0; n < 16; ++n) {
          const uint32_t b = w.words[k][n];
          even[n] = MultiplyAdd(a & 0xffff, b & 0xffff, even[n]);
          odd[n] = MultiplyAdd(a >> 16, b >> 16, odd[n]);
        }
      }
      for (int n = 0; n < 16; ++n) {
        float value;
        std::memcpy(&value, &sum.words[m][n], sizeof(value));
        value = Flush(Flush(value) + Flush(even[n] + odd[n]));
        std::memcpy(&sum.words[m][n], &value, sizeof(value));
      }
    }
  }

 private:
  struct Tile {
    int rows = 0;
    bool written = false;
    uint32_t words[16][16] = {};
  };

  static float MultiplyAdd(uint32_t a, uint32_t b, float sum) {
    return Flush(std::fma(Bf16Value(static_cast<uint16_t>(a)),
                          Bf16Value(static_cast<uint16_t>(b)), sum));
  }
  template <int kAt>
  Tile& Written() {
    Expect(tiles_[kAt].rows > 0);
    tiles_[kAt].written = true;
    return tiles_[kAt];
  }
  template <int kAt>
  const Tile& Read() const {
    Expect(tiles_[kAt].rows > 0 && tiles_[kAt].written);
    return tiles_[kAt];
  }

  Tile tiles_[8];
};

}  // namespace
}  // namespace isa_emulated_amx

const ProductKernels& EmulatedAmxProducts() {
  return isa_emulated_amx::kTileProducts<isa_emulated_amx::EmulatedTiles>;
}

}  // namespace cpu
}  // namespace encoderd
