// What this machine can do at most: fused multiply-adds from registers.
#ifndef ENCODERD_TESTS_BENCH_PEAK_H_
#define ENCODERD_TESTS_BENCH_PEAK_H_

#include <cstdint>

#include "engine/base/tensor.h"
#include "engine/device/cpu/cpu_info.h"

namespace encoderd {

// FLOP/s that `threads` threads reach together in `dtype` by nothing but
// independent multiply-adds of the widest instructions of `isa`, which the CPU
// has; in bf16 of pairs where those are faster (HasFastBf16). Takes about
// `seconds`.
double MeasurePeak(DType dtype, cpu::Isa isa, int32_t threads, double seconds);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_BENCH_PEAK_H_
