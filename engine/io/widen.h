// Bits of checkpoint values -> float. Widening is exact, subnormals included.
#ifndef ENCODERD_ENGINE_IO_WIDEN_H_
#define ENCODERD_ENGINE_IO_WIDEN_H_

#include <cstdint>

namespace encoderd {

void WidenF16(const uint16_t* in, int64_t count, float* out);
void WidenBF16(const uint16_t* in, int64_t count, float* out);

// Index of the first NaN or infinity; -1 when there is none.
int64_t FindNonFinite(const float* values, int64_t count);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_IO_WIDEN_H_
