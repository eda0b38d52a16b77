// Products of bf16 by AMX; compiled with the flags of AMX_TILE and AMX_BF16,
// and of AVX512_BF16 for what follows the sums.
#if defined(__AMX_BF16__) || defined(__AMXBF16__)  // clang before 16
#define ENCODERD_ISA isa_avx512_amx
#include "engine/device/cpu/tile_kernel.h"
#else
#include "engine/device/cpu/kernels.h"
#endif

namespace encoderd {
namespace cpu {

#ifdef ENCODERD_ISA
namespace isa_avx512_amx {

// Written as instructions: the compilers' own intrinsics (gcc 12) say neither
// that loads read memory nor how much, and take no template's numbers.
class AmxTiles {
 public:
  AmxTiles() = default;
  ~AmxTiles() { asm volatile("tilerelease"); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

  void Configure(const TileShapes& shapes) {
    struct alignas(64) {
      uint8_t palette = 1;
      uint8_t start_row = 0;
      uint8_t reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } config;
    for (int t = 0; t < 8; ++t) {
      config.rows[t] = shapes.rows[t];
      config.row_bytes[t] = shapes.rows[t] == 0 ? 0 : kTileBytes;
    }
    asm volatile("ldtilecfg %0" : : "m"(config));
  }
  template <int kAt>
  ENCODERD_INLINE void Load(const void* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
                 :
                 : "r"(from), "r"(stride), "i"(kAt)
                 : "memory");
  }
  template <int kAt>
  ENCODERD_INLINE void Zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kAt));
  }
  template <int kSum, int kX, int kW>
  ENCODERD_INLINE void Dot() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0"
                 :
                 : "i"(kSum), "i"(kX), "i"(kW));
  }
  template <int kAt>
  ENCODERD_INLINE void Store(void* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                 :
                 : "r"(to), "r"(stride), "i"(kAt)
                 : "memory");
  }
};

}  // namespace isa_avx512_amx

const ProductKernels* Avx512AmxProducts() {
  return &isa_avx512_amx::kTileProducts<isa_avx512_amx::AmxTiles>;
}
#else
const ProductKernels* Avx512AmxProducts() { return nullptr; }
#endif

}  // namespace cpu
}  // namespace encoderd
