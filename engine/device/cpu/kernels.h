// The vector kernels of one instruction set and one element type, as a table
// of functions: everything of a forward pass but the matrix products.
//
// One source (the *_kernel.h files) is compiled once for every instruction
// set; FloatKernels picks a table at run time, so one binary starts on any CPU.
// A row's result never depends on the rows beside it. No kernel allocates,
// throws or keeps state. Elements are float or bf16 (uint16_t: the upper half
// of a float) as Kernels::bf16 says; gains, biases, tables and every sum are
// float. Only plain types here: this header is compiled with the flags of
// every instruction set, so it must not pull in inline functions.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_KERNELS_H_
#define ENCODERD_ENGINE_DEVICE_CPU_KERNELS_H_

#include <cstdint>

namespace encoderd {
namespace cpu {

// y [rows,H] = (x - mean) / sqrt(var + eps) * gain + bias
struct NormRef {
  const float* gain;
  const float* bias;
  float eps;
  int64_t size;  // H
};

struct EmbedArgs {
  const float* token;     // [V,H]
  const float* position;  // [P,H], or null: the scheme adds no rows
  const float* segment;   // [S,H], or null: no segments
  const int32_t* token_ids;
  const int32_t* position_ids;
  const int32_t* segment_ids;
  int64_t rows;
  NormRef norm;  // gain null: the sums themselves
};

constexpr int64_t kBiasPadding = 16;

// One sequence, every head. qkv and context point to its first row.
struct AttentionArgs {
  const void* qkv;  // [n,3H] as Q|K|V
  void* context;    // [n,H]
  int64_t n;
  int64_t heads;
  int64_t head_size;
  void* scratch;  // attention_scratch_bytes(n or more, head_size), aligned 64
  // Added to the scores of query i and key j: bias[head * bias_stride + j - i];
  // null: nothing is. kBiasPadding floats beyond j = n - 1 are read too.
  const float* bias = nullptr;
  int64_t bias_stride = 0;
};

enum class ElementWise { kGeluErf, kGeluTanh, kRelu };

struct Kernels {
  bool bf16;
  void (*embed)(const EmbedArgs& args, float* row, void* out);
  // y may be x or residual; row is scratch for H floats.
  void (*add_layer_norm)(const void* x, const void* residual, int64_t rows,
                         const NormRef& norm, float* row, void* y);
  void (*element_wise)(ElementWise function, int64_t count, void* values);
  int64_t (*attention_scratch_bytes)(int64_t max_seqlen, int64_t head_size);
  void (*attention)(const AttentionArgs& args);
  void (*to_float)(const void* from, int64_t count, float* to);
  // Products for CPUs on which oneDNN's rows depend on each other; null for
  // bf16. Weights [out,in] are packed once into packed_floats values.
  int64_t (*packed_floats)(int64_t in, int64_t out);
  void (*pack)(const float* weights, int64_t in, int64_t out, float* packed);
  void (*product)(const float* x, int64_t rows, const float* packed,
                  const float* bias, int64_t in, int64_t out, float* y);
};

// Tables of one translation unit each; null where the compiler or the target
// architecture lacks the instruction set. cpu_device.cc picks.
const Kernels* PortableKernels();
const Kernels* Avx2Kernels();
const Kernels* Avx512Kernels();
const Kernels* Avx512Bf16Kernels();  // the bf16 table

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_KERNELS_H_
