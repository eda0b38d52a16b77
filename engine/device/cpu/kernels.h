// The vector kernels of one instruction set and one element type, as a table
// of functions: everything of a forward pass but oneDNN's matrix products.
//
// One source (the *_kernel.h files, listed below) is compiled once for every
// instruction set; cpu_device.cc picks a table at run time, so one binary
// starts on any CPU. A row's result never depends on other rows. No kernel
// allocates, throws or keeps state. Elements are float or bf16 (uint16_t: the
// upper half of a float) as Kernels::bf16 says; gains, biases, tables and every
// sum are float. Only plain types here: this header is compiled with the flags
// of every instruction set, so it must not pull in inline functions.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_KERNELS_H_
#define ENCODERD_ENGINE_DEVICE_CPU_KERNELS_H_

#include <cstdint>

#include "engine/device/ops.h"

namespace encoderd {
namespace cpu {

// scratch: what scratch_bytes of Kernels says, aligned to 64.
template <typename O>
struct Kernel {
  void (*run)(const O& op, void* scratch);
};

// Attention reads as many floats of a bias beyond its last distance.
constexpr int64_t kBiasPadding = 16;

// EmbedOp and AddNormOp: scratch for a row of floats. AttentionOp: of one
// sequence, whose rows qkv and context have; scratch for
// attention_scratch_bytes(its length or more, head_size).
struct Kernels : Kernel<EmbedOp>,
                 Kernel<RotateOp>,
                 Kernel<AttentionOp>,
                 Kernel<GateOp>,
                 Kernel<AddNormOp> {
  bool bf16;
  int64_t (*attention_scratch_bytes)(int64_t max_seqlen, int64_t head_size);
  // values = function(values), in place.
  void (*activate)(Activation function, int64_t count, void* values);
  void (*to_float)(const void* from, int64_t count, float* to);
  // Products for CPUs on which oneDNN's rows depend on each other; null for
  // bf16. Weights [out,in] are packed once into packed_floats values.
  int64_t (*packed_floats)(int64_t in, int64_t out);
  void (*pack)(const float* weights, int64_t in, int64_t out, float* packed);
  void (*product)(const float* x, int64_t rows, const float* packed,
                  const float* bias, int64_t in, int64_t out, float* y);
};

// Tables of one translation unit each; null where the compiler or the target
// architecture lacks the instruction set.
const Kernels* PortableKernels();
const Kernels* Avx2Kernels();
const Kernels* Avx512Kernels();
const Kernels* Avx512Bf16Kernels();  // the bf16 table

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
    sizeof(typename E::Element) == 2,
    AttentionScratchBytes<E>,
    MapElementWise<E>,
    ToFloat<E>,
    sizeof(typename E::Element) == 4 ? PackedFloats : nullptr,
    sizeof(typename E::Element) == 4 ? PackWeights : nullptr,
    sizeof(typename E::Element) == 4 ? Product : nullptr,
};

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd
#endif

#endif  // ENCODERD_ENGINE_DEVICE_CPU_KERNELS_H_
