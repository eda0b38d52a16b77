// primitives.h on a card. Included by it alone, compiled by nvcc alone.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_PRIMITIVES_NVCC_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_PRIMITIVES_NVCC_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

// ENCODERD_KERNEL(threads) Name(...): threads is the most of a block. After it,
// where that pays, the blocks that an SM must have registers for.
#define ENCODERD_KERNEL(...) __global__ void __launch_bounds__(__VA_ARGS__)
#define ENCODERD_DEVICE __device__ __forceinline__
#define ENCODERD_UNROLL _Pragma("unroll")

namespace encoderd {
namespace cuda {

ENCODERD_DEVICE int32_t ThreadIndex() { return threadIdx.x; }
ENCODERD_DEVICE int32_t BlockThreads() { return blockDim.x; }
ENCODERD_DEVICE int32_t BlockX() { return blockIdx.x; }
ENCODERD_DEVICE int32_t BlockY() { return blockIdx.y; }

// The block's shared memory (LaunchShape::shared_bytes), aligned to 16.
ENCODERD_DEVICE char* SharedMemory() {
  extern __shared__ __align__(128) char shared[];
  return shared;
}

// Every kernel calls it first: lets the next kernel on the stream be brought to
// the card, and waits until the earlier ones are done and what they wrote can
// be read. Nothing is touched in memory before it.
ENCODERD_DEVICE void AwaitEarlierKernels() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Every thread of the block comes here before any goes on.
ENCODERD_DEVICE void Barrier() { __syncthreads(); }

// All 32 lanes of the warp come here before any goes on; what one wrote or
// waited for (CopyWait) before it, the others see after it.
ENCODERD_DEVICE void WarpBarrier() { __syncwarp(); }

// Warp-wide: all 32 lanes call it together.
ENCODERD_DEVICE float ShuffleXor(float value, int32_t mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
ENCODERD_DEVICE float ShuffleFrom(float value, int32_t lane) {
  return __shfl_sync(0xffffffffu, value, lane);
}

// 16 bytes from global to shared memory, both aligned to 16, arriving after
// CopyCommit and CopyWait; zeros where not `valid` (`global` is not read).
ENCODERD_DEVICE void CopyAsync16(void* shared, const void* global, bool valid) {
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to),
               "l"(global), "r"(bytes)
               : "memory");
}
// Closes the group of this thread's copies so far.
ENCODERD_DEVICE void CopyCommit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
// Waits until at most `kGroups` of this thread's groups are in flight. Copies
// of other threads are visible after a Barrier, those of lanes of this warp
// after a WarpBarrier.
template <int kGroups>
ENCODERD_DEVICE void CopyWait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kGroups) : "memory");
}

// Four 8x8 matrices of 16-bit elements from shared memory, warp-wide. Lane l
// names row l%8 of matrix l/8 (16 bytes, aligned to 16) and gets, of matrix i,
// in r[i]: elements [l/4][2(l%4)] and [l/4][2(l%4)+1].
ENCODERD_DEVICE void LoadMatrix4(const void* row, uint32_t (&r)[4]) {
  const uint32_t from = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}
// The same, transposed: elements [2(l%4)][l/4] and [2(l%4)+1][l/4].
ENCODERD_DEVICE void LoadMatrix4Transposed(const void* row, uint32_t (&r)[4]) {
  const uint32_t from = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(from)
      : "memory");
}

// d [16,8] += a [16,16] b [16,8] in float, warp-wide; the fragments of PTX's
// mma.m16n8k16.
ENCODERD_DEVICE void MultiplyAdd(float (&d)[4], const uint32_t (&a)[4],
                                 uint32_t b0, uint32_t b1, Half) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
ENCODERD_DEVICE void MultiplyAdd(float (&d)[4], const uint32_t (&a)[4],
                                 uint32_t b0, uint32_t b1, Bf16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

ENCODERD_DEVICE float ToFloat(float value) { return value; }
ENCODERD_DEVICE float ToFloat(Half value) {
  return __half2float(__ushort_as_half(value.bits));
}
ENCODERD_DEVICE float ToFloat(Bf16 value) {
  return __uint_as_float(static_cast<uint32_t>(value.bits) << 16);
}
// Rounds to nearest, ties to even.
ENCODERD_DEVICE void FromFloat(float value, float* to) { *to = value; }
ENCODERD_DEVICE void FromFloat(float value, Half* to) {
  to->bits = __half_as_ushort(__float2half_rn(value));
}
ENCODERD_DEVICE void FromFloat(float value, Bf16* to) {
  to->bits = __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

// Two e4m3 codes, the first in the lower byte; to nearest, ties to even, past
// 448 to 448, a NaN to 0x7f.
ENCODERD_DEVICE uint16_t E4m3Pair(float first, float second) {
  return __nv_cvt_float2_to_fp8x2(make_float2(first, second), __NV_SATFINITE,
                                  __NV_E4M3);
}

ENCODERD_DEVICE float Exp(float x) { return expf(x); }
ENCODERD_DEVICE float Exp2(float x) {  // 2^x, error under 2 units, 2^-inf = 0
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
ENCODERD_DEVICE float Erf(float x) { return erff(x); }
ENCODERD_DEVICE float Tanh(float x) { return tanhf(x); }
ENCODERD_DEVICE float Sqrt(float x) { return sqrtf(x); }
// a b + c, rounded once.
ENCODERD_DEVICE float FusedMultiplyAdd(float a, float b, float c) {
  return fmaf(a, b, c);
}
ENCODERD_DEVICE float Max(float a, float b) { return fmaxf(a, b); }
ENCODERD_DEVICE float Infinity() { return __int_as_float(0x7f800000); }

// Eight elements at once; the address is a multiple of eight elements.
template <typename T>
struct alignas(16) Vector8 {
  T values[8];
};
template <typename T>
ENCODERD_DEVICE Vector8<T> LoadVector8(const T* from) {
  return *reinterpret_cast<const Vector8<T>*>(from);
}
template <typename T>
ENCODERD_DEVICE void StoreVector8(const Vector8<T>& vector, T* to) {
  *reinterpret_cast<Vector8<T>*>(to) = vector;
}
// Four 16-bit elements at once, the address a multiple of four of them.
template <typename T>
struct alignas(8) Vector4 {
  T values[4];
};
template <typename T>
ENCODERD_DEVICE void StoreVector4(const Vector4<T>& vector, T* to) {
  *reinterpret_cast<Vector4<T>*>(to) = vector;
}
// Two 16-bit elements in one word, the first in the lower half.
ENCODERD_DEVICE void StoreWord(uint32_t word, void* to) {
  *static_cast<uint32_t*>(to) = word;
}

// For which virtual architecture a kernel was compiled that the device in use
// runs; the runtime's code.
template <typename... Parameters>
int PtxVersionOf(void (*kernel)(Parameters...), int32_t* version) {
  cudaFuncAttributes attributes = {};
  const cudaError_t code = cudaFuncGetAttributes(&attributes, kernel);
  *version = attributes.ptxVersion;
  if (code != cudaSuccess) cudaGetLastError();  // it is reported here
  return static_cast<int>(code);
}

// Starts a kernel on the stream; the launch's code, or cudaGetLastError's.
template <typename... Parameters, typename... Arguments>
int Launch(void (*kernel)(Parameters...), const LaunchShape& shape,
           const OpStream& on, Arguments... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(shape.blocks_x),
                        static_cast<unsigned>(shape.blocks_y));
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = static_cast<size_t>(shape.shared_bytes);
  config.stream = static_cast<cudaStream_t>(on.stream);
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &overlap;
  config.numAttrs = on.overlaps ? 1 : 0;
  const cudaError_t code =
      cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
  const cudaError_t last = cudaGetLastError();
  return static_cast<int>(code != cudaSuccess ? code : last);
}

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_PRIMITIVES_NVCC_H_
