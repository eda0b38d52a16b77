// Products in 8 bits, as a table of functions like kernels.h: compiled with
// its own flags, plain types only.
//
//   y [rows,out] = x [rows,in] W^T + bias, in bf16
//
// Rows of x and of W are rotated alike, which leaves their product as it is and
// their columns of one size. Then a row of x becomes codes of 0 to 255, 255
// steps from its least value to its largest, and a row of W codes of -127 to
// 127. Their products are added as integers, exactly, and then scaled by both
// rows in float: a row's bits depend on itself alone, whatever the order.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_INT8_KERNELS_H_
#define ENCODERD_ENGINE_DEVICE_CPU_INT8_KERNELS_H_

#include <cstdint>

namespace encoderd {
namespace cpu {

// value = scale * (code - zero)
struct RowScale {
  float scale;
  int32_t zero;
};

struct Int8Weights {
  int8_t* packed;  // packed_bytes
  float* scales;   // [out], like sums and bias padded to whole panels
  int32_t* sums;   // [out], of the codes of a row of W
  float* bias;     // [out]
};

struct Int8Kernels {
  // Columns of a panel, and bytes of the codes of a row [in].
  int64_t panel;
  int64_t (*code_bytes)(int64_t in);
  int64_t (*packed_bytes)(int64_t in, int64_t out);
  // Everything but the bias. row: code_bytes(in) floats of scratch, here and
  // below.
  void (*pack)(const float* weights, int64_t in, int64_t out, float* row,
               Int8Weights to);
  // codes [rows,code_bytes(in)], scales [rows].
  void (*quantize)(const void* x, int64_t rows, int64_t in, float* row,
                   uint8_t* codes, RowScale* scales);
  // first_column .. + columns - 1; the first is a panel's first. y [rows,
  // columns].
  void (*multiply)(const uint8_t* codes, const RowScale* scales, int64_t rows,
                   const Int8Weights& weights, int64_t in, int64_t first_column,
                   int64_t columns, void* y);
};

// Null where the compiler or the target architecture lacks AVX512_VNNI.
const Int8Kernels* Avx512VnniKernels();

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_INT8_KERNELS_H_
