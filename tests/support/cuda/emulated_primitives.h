// engine/device/cuda/kernels/primitives.h on the host, over the emulation; the
// same declarations as primitives_nvcc.h, which has the comments.
#ifndef ENCODERD_TESTS_SUPPORT_CUDA_EMULATED_PRIMITIVES_H_
#define ENCODERD_TESTS_SUPPORT_CUDA_EMULATED_PRIMITIVES_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/support/cuda/emulated_stream.h"
#include "tests/support/cuda/emulation.h"
#include "tests/support/narrow.h"

#define ENCODERD_KERNEL(...) void
#define ENCODERD_DEVICE inline
#define ENCODERD_UNROLL

namespace encoderd {
namespace cuda {

inline int32_t ThreadIndex() { return emulation::ThreadIndex(); }
inline int32_t BlockThreads() { return emulation::BlockThreads(); }
inline int32_t BlockX() { return emulation::BlockX(); }
inline int32_t BlockY() { return emulation::BlockY(); }
inline void AwaitEarlierKernels() { emulation::AwaitEarlierKernels(); }
inline char* SharedMemory() { return emulation::SharedMemory(); }
inline void Barrier() { emulation::Barrier(); }
inline void WarpBarrier() { emulation::WarpBarrier(); }

float ShuffleXor(float value, int32_t mask);
float ShuffleFrom(float value, int32_t lane);

inline void CopyAsync16(void* shared, const void* global, bool valid) {
  emulation::CopyAsync16(shared, global, valid);
}
inline void CopyCommit() { emulation::CopyCommit(); }
template <int kGroups>
void CopyWait() {
  emulation::CopyWait(kGroups);
}

void LoadMatrix4(const void* row, uint32_t (&r)[4]);
void LoadMatrix4Transposed(const void* row, uint32_t (&r)[4]);
void MultiplyAdd(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                 uint32_t b1, Half);
void MultiplyAdd(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                 uint32_t b1, Bf16);

inline float ToFloat(float value) { return value; }
inline float ToFloat(Half value) { return emulation::FromHalf(value.bits); }
inline float ToFloat(Bf16 value) { return emulation::FromBf16(value.bits); }
inline void FromFloat(float value, float* to) { *to = value; }
inline void FromFloat(float value, Half* to) {
  to->bits = emulation::ToHalf(value);
}
inline void FromFloat(float value, Bf16* to) {
  to->bits = emulation::ToBf16(value);
}

inline uint16_t E4m3Pair(float first, float second) {
  return static_cast<uint16_t>(emulation::ToE4m3(first) |
                               emulation::ToE4m3(second) << 8);
}

inline float Exp(float x) { return std::exp(x); }
inline float Exp2(float x) { return std::exp2(x); }
inline float Erf(float x) { return std::erf(x); }
inline float Tanh(float x) { return std::tanh(x); }
inline float Sqrt(float x) { return std::sqrt(x); }
inline float FusedMultiplyAdd(float a, float b, float c) {
  return std::fma(a, b, c);
}
inline float Max(float a, float b) { return std::fmax(a, b); }
inline float Infinity() { return std::numeric_limits<float>::infinity(); }

template <typename T>
struct alignas(16) Vector8 {
  T values[8];
};
template <typename T>
Vector8<T> LoadVector8(const T* from) {
  emulation::CheckAligned(from, 16, "LoadVector8");
  emulation::CheckVisible(from, "LoadVector8");
  return *reinterpret_cast<const Vector8<T>*>(from);
}
template <typename T>
void StoreVector8(const Vector8<T>& vector, T* to) {
  emulation::CheckAligned(to, 16, "StoreVector8");
  *reinterpret_cast<Vector8<T>*>(to) = vector;
}
template <typename T>
struct alignas(8) Vector4 {
  T values[4];
};
template <typename T>
void StoreVector4(const Vector4<T>& vector, T* to) {
  emulation::CheckAligned(to, 8, "StoreVector4");
  *reinterpret_cast<Vector4<T>*>(to) = vector;
}
inline void StoreWord(uint32_t word, void* to) {
  emulation::CheckAligned(to, 4, "StoreWord");
  std::memcpy(to, &word, sizeof(word));
}

template <typename... Parameters>
int PtxVersionOf(void (*kernel)(Parameters...), int32_t* version) {
  *version = 90;
  return 0;
}

template <typename... Parameters, typename... Arguments>
int Launch(void (*kernel)(Parameters...), const LaunchShape& shape,
           const OpStream& on, Arguments... arguments) {
  return emulation::Put(on.stream, [=] {
    return emulation::Run(
        {shape.blocks_x, shape.blocks_y, shape.threads, shape.shared_bytes,
         /*awaits=*/true},
        [&] { kernel(arguments...); });
  });
}

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_CUDA_EMULATED_PRIMITIVES_H_
