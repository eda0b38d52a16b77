// The vector kernels of one instruction set and one element type, as a table
// of functions: everything of a forward pass.
//
// One source (the *_kernel.h files, listed below) is compiled once for every
// instruction set; cpu_device.cc picks a table at run time, so one binary
// starts on any CPU. A row's result never depends on other rows. No kernel
// allocates, throws or keeps state. Elements are float or bf16 (uint16_t: the
// upper half of a float) as Kernels::bf16 says; gains, biases and every sum are
// float, tables as TablesRef::dtype says. Only plain types here: this header is
// compiled with the flags of every instruction set, so it must not pull in
// inline functions.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_KERNELS_H_
#define ENCODERD_ENGINE_DEVICE_CPU_KERNELS_H_

#include <cstdint>

#include "engine/device/ops.h"

namespace encoderd {
namespace cpu {

// scratch: as Kernels says, aligned to 64.
template <typename O>
struct Kernel {
  void (*run)(const O& op, void* scratch);
};

// Attention reads as many floats of a bias beyond its last distance.
constexpr int64_t kBiasPadding = 16;

// The most columns of a product in 8 bits: a sum of more products of 255 and
// 127 could overflow 32 bits.
constexpr int64_t kMostInt8Columns = INT32_MAX / (255 * 127);

// y [rows,out] = activation(x [rows,in] W^T + b).
struct PackedWeights {
  int64_t in = 0;
  int64_t out = 0;
  const float* packed = nullptr;
  const float* bias = nullptr;  // [whole panels]
  Activation activation = Activation::kNone;
};

// The panels of columns of a product that a run computes: first .. first +
// count
// - 1. next: which the thread is likely to need after them, and so may be
// fetched; less than 0: none.
struct Panels {
  int64_t first = 0;
  int64_t count = 0;
  int64_t next = -1;
};

// Matrix products, of elements in and out. Weights [out,in] are packed once, in
// panels of panel_columns columns, of which `product` computes some. The bits
// of a row depend on it alone.
struct ProductKernels {
  int64_t panel_columns;
  // Approximate cost of preparing a row in each run (widening, quantizing), in
  // quarters of multiplying the row by a panel.
  int64_t prepare_quarters;
  int64_t (*packed_floats)(int64_t in, int64_t out);
  // scratch: [panel_columns,in] floats.
  void (*pack)(const float* weights, int64_t in, int64_t out, float* packed,
               float* scratch);
  void (*product)(const PackedWeights& weights, const Matrix& x,
                  const Panels& panels, const Matrix& y, void* scratch);
  int64_t (*product_scratch_bytes)(int64_t rows, int64_t in, int64_t out);
};

// EmbedOp and AddNormOp: scratch for a row of floats. AttentionOp: of one
// sequence, whose rows qkv has, and context those of its queries; scratch for
// attention_scratch_bytes(its length or more, head_size).
struct Kernels : Kernel<EmbedOp>,
                 Kernel<RotateOp>,
                 Kernel<AttentionOp>,
                 Kernel<GateOp>,
                 Kernel<AddNormOp>,
                 ProductKernels {
  bool bf16;
  int64_t (*attention_scratch_bytes)(int64_t max_seqlen, int64_t head_size);
  void (*to_float)(const void* from, int64_t count, float* to);
};

// Tables of one translation unit each; null where the compiler or the target
// architecture lacks the instruction set. dtype: kF32, or kBF16, which is
// multiplied as floats.
const Kernels* PortableKernels(DType dtype);
const Kernels* Avx2Kernels(DType dtype);
const Kernels* Avx512Kernels(DType dtype);
const Kernels* Avx512Bf16Kernels();  // of bf16, by vdpbf16ps
// Of bf16 in and out, 8 bits in between. Both give the same bits, except for
// NaNs and numbers below 2^-126.
const ProductKernels* Avx512VnniProducts();
const ProductKernels* Avx512VnniBf16Products();
const ProductKernels* Avx512AmxProducts();  // of bf16, by tiles

}  // namespace cpu
}  // namespace encoderd

// The table, for the sources of one instruction set.
#ifdef ENCODERD_ISA
#include "engine/device/cpu/attention_kernel.h"
#include "engine/device/cpu/element_wise_kernel.h"
#include "engine/device/cpu/gate_kernel.h"
#include "engine/device/cpu/layer_norm_kernel.h"
#include "engine/device/cpu/product_kernel.h"
#include "engine/device/cpu/rotate_kernel.h"

namespace encoderd {
namespace cpu {
namespace ENCODERD_ISA {

// Of elements E (simd.h), which MultiplyAdd (dot.h) multiplies.
template <typename E, typename MultiplyAdd>
inline constexpr Kernels kTable = {
    {Embed<E>},
    {RotateHeads<E>},
    {Attention<E, MultiplyAdd>},
    {Gate<E>},
    {AddLayerNorm<E>},
    {kProductColumns, kWidens<E, MultiplyAdd> ? 1 : 0, PackedFloats<E>,
     PackWeights<E>, Product<E, MultiplyAdd>,
     ProductScratchBytes<E, MultiplyAdd>},
    sizeof(typename E::Element) == 2,
    AttentionScratchBytes<E, MultiplyAdd>,
    ToFloat<E>,
};

// A template, so that only sources that call it compile these tables.
template <typename...>
ENCODERD_INLINE const Kernels* TableOf(DType dtype) {
  if (dtype == DType::kF32) return &kTable<F32, MultiplyAddF32>;
  return &kTable<BF16, MultiplyAddPairs>;
}

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd
#endif

#endif  // ENCODERD_ENGINE_DEVICE_CPU_KERNELS_H_
