// Floats of 16 and 8 bits, as bits, from and to float: for checkpoints, GPUs
// and answers. (Kernels have their own conversions, which depend on the
// instruction set or card: cpu/simd.h, cuda/kernels/primitives.h.)
//
// Widening is exact, subnormals included; narrowing is to nearest, ties to
// even.
#ifndef ENCODERD_ENGINE_IO_HALF_FLOATS_H_
#define ENCODERD_ENGINE_IO_HALF_FLOATS_H_

#include <cstdint>

namespace encoderd {

void WidenF16(const uint16_t* in, int64_t count, float* out);
void WidenBF16(const uint16_t* in, int64_t count, float* out);

// bf16 and fp16 as bits. A value past fp16's range becomes infinite.
uint16_t NarrowToBf16(float value);
uint16_t NarrowToHalf(float value);
// e4m3 as bits. A value past 448 becomes 448, a NaN 0x7f.
uint8_t NarrowToE4m3(float value);

// Index of the first NaN or infinity; -1: none.
int64_t FindNonFinite(const float* values, int64_t count);
int64_t FindNonFiniteF16(const uint16_t* bits, int64_t count);
int64_t FindNonFiniteBF16(const uint16_t* bits, int64_t count);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_IO_HALF_FLOATS_H_
