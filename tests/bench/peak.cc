#include "tests/bench/peak.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace encoderd {
namespace {

// Each function does `steps` rounds of kChains independent multiply-adds and
// returns a value that depends on all of them.
constexpr int kChains = 24;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) float Avx512Steps(int64_t steps) {
  __m512 sums[kChains];
  for (auto& sum : sums) sum = _mm512_set1_ps(1.0f);
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 24
    for (auto& sum : sums) sum = _mm512_fmadd_ps(sum, a, b);
  }
  float total = 0;
  for (const auto& sum : sums) total += _mm512_cvtss_f32(sum);
  return total;
}

__attribute__((target("avx512f,avx512bf16"))) float Bf16Steps(int64_t steps) {
  __m512 sums[kChains];
  for (auto& sum : sums) sum = _mm512_set1_ps(1.0f);
  const __m512i word = _mm512_set1_epi32(0x00010001);
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 24
    for (auto& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(word),
                             reinterpret_cast<__m512bh>(word));
    }
  }
  float total = 0;
  for (const auto& sum : sums) total += _mm512_cvtss_f32(sum);
  return total;
}

__attribute__((target("avx2,fma"))) float Avx2Steps(int64_t steps) {
  constexpr int kHalf = kChains / 2;  // of 16 registers
  __m256 sums[kHalf];
  for (auto& sum : sums) sum = _mm256_set1_ps(1.0f);
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 24
    for (auto& sum : sums) sum = _mm256_fmadd_ps(sum, a, b);
  }
  float total = 0;
  for (const auto& sum : sums) total += _mm256_cvtss_f32(sum);
  return total;
}
#endif

float BaselineSteps(int64_t steps) {
  constexpr int kWidth = 8;
  float sums[kWidth][4];
  for (auto& sum : sums) std::fill(sum, sum + 4, 1.0f);
  for (int64_t i = 0; i < steps; ++i) {
    for (auto& sum : sums) {
      for (float& lane : sum) lane = lane * 0.999f + 0.001f;
    }
  }
  float total = 0;
  for (const auto& sum : sums) total += sum[0] + sum[1] + sum[2] + sum[3];
  return total;
}

struct Loop {
  float (*run)(int64_t steps);
  double flops_per_step;
};

Loop LoopFor(DType dtype, cpu::Isa isa) {
#if defined(__x86_64__)
  if (dtype == DType::kBF16 && cpu::HasFastBf16(isa))
    return {Bf16Steps, kChains * 64.0};
  if (isa >= cpu::Isa::kAvx512) return {Avx512Steps, kChains * 32.0};
  if (isa >= cpu::Isa::kAvx2) return {Avx2Steps, kChains / 2 * 16.0};
#endif
  return {BaselineSteps, 8 * 4 * 2.0};
}

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

double MeasurePeak(DType dtype, cpu::Isa isa, int32_t threads, double seconds) {
  const Loop loop = LoopFor(dtype, isa);
  std::vector<double> rates(threads);
  std::vector<std::thread> workers;
  for (int32_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      constexpr int64_t kSteps = 100000;
      volatile float sink = 0;
      const double end = Now() + seconds;
      while (Now() < end) {
        const double start = Now();
        sink = sink + loop.run(kSteps);
        rates[t] =
            std::max(rates[t], kSteps * loop.flops_per_step / (Now() - start));
      }
    });
  }
  double total = 0;
  for (int32_t t = 0; t < threads; ++t) {
    workers[t].join();
    total += rates[t];
  }
  return total;
}

}  // namespace encoderd
