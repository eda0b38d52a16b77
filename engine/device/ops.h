// The ops of a forward pass, one plain struct each: what the encoder hands to
// an Executor, what both devices' kernels read, and what a card records.
//
// Matrices are rank two, row-major and dense; every pointer is the device's
// memory unless it says otherwise. Inputs come first, the output last; aliasing
// is stated. A row's bits never depend on other rows, a sequence's never on
// other sequences of its batch. Sums, softmax and norms are float; a result is
// rounded once, to its matrix's dtype.
//
// Code that creates an op leaves fields under "by the Executor" unset: an
// Executor sets them for its kernels.
//
// Sizes: T tokens, B sequences, H hidden, F feed-forward, A heads, D = H/A.
//
// Plain types only: this header is read by nvcc and by every instruction set's
// flags (kernels.h), so it must not pull in functions that they would compile.
#ifndef ENCODERD_ENGINE_DEVICE_OPS_H_
#define ENCODERD_ENGINE_DEVICE_OPS_H_

#include <cstdint>

#include "engine/base/kinds.h"

namespace encoderd {

class DeviceLinear;

namespace cuda {
enum class AttentionPath : int32_t;
struct AttentionWork;
}  // namespace cuda

// View of a device matrix [rows,cols].
struct Matrix {
  void* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;

  bool operator==(const Matrix&) const = default;
};

// y = (x - mean) / sqrt(var + eps) * gain + bias. A norm without a bias has
// zeros there.
struct NormRef {
  const float* gain = nullptr;  // [cols]
  const float* bias = nullptr;  // [cols]
  float eps = 0;

  bool operator==(const NormRef&) const = default;
};

// Tables whose rows an embedding sums, all of one dtype: on a CPU the
// checkpoint's, on a card the device's. Null adds nothing.
struct TablesRef {
  const void* token = nullptr;     // [V,cols]
  const void* position = nullptr;  // [P,cols]
  const void* segment = nullptr;   // [S,cols]
  DType dtype = DType::kF32;

  bool operator==(const TablesRef&) const = default;
};

// The ids of a batch, [rows]. rows: T, sequences: B, or more where the device
// pads.
struct BatchRef {
  int64_t rows = 0;
  const int32_t* token_ids = nullptr;
  const int32_t* position_ids = nullptr;
  const int32_t* segment_ids = nullptr;
  int64_t sequences = 0;

  bool operator==(const BatchRef&) const = default;
};

// out [T,cols] = LayerNorm(token row + position row + segment row).
struct EmbedOp {
  static constexpr char kName[] = "embed_tokens";
  TablesRef tables;
  BatchRef batch;
  NormRef norm;  // gain null: the sums themselves
  Matrix out;

  bool operator==(const EmbedOp&) const = default;
};

// y [rows,out] = activation(x [rows,in] W^T + b); y must not alias x.
struct ProductOp {
  static constexpr char kName[] = "product";
  Matrix x;
  const DeviceLinear* weights = nullptr;  // host memory, the device's own form
  Matrix y;
  // By the Executor: a residual [rows,out] added to the product, or null.
  const void* residual = nullptr;

  bool operator==(const ProductOp&) const = default;
};

// Rotates Q and K of qkv [T,3H], as Q|K|V, in place. The first 2 pairs columns
// of a head are rotated, those after them stay: with c and s of the row's
// position id, (x[i], x[i + pairs]) becomes (x[i] c[i] - x[i + pairs] s[i],
// x[i + pairs] c[i] + x[i] s[i]).
struct RotateOp {
  static constexpr char kName[] = "rotate";
  Matrix qkv;
  int32_t heads = 0;
  int32_t head_size = 0;
  const float* cos = nullptr;             // [P,pairs]
  const float* sin = nullptr;             // [P,pairs]
  int32_t pairs = 0;                      // at most D/2
  const int32_t* position_ids = nullptr;  // [T]

  bool operator==(const RotateOp&) const = default;
};

// context [rows,H] = softmax(Q K^T / sqrt(D) + bias) V for each of some
// sequences, which have the rows, and each head; qkv [rows,3H] as Q|K|V;
// context must not alias qkv.
struct AttentionOp {
  static constexpr char kName[] = "attention";
  Matrix qkv;
  int32_t heads = 0;
  int32_t head_size = 0;
  Reach reach;
  // Which sequences of the batch; with a count of 0 all.
  int64_t first_sequence = 0;
  int64_t sequence_count = 0;
  // Added to a score after the division by sqrt(D): of head h, query i and key
  // j of a sequence bias[h * bias_stride + j - i]. Null: none. It points into a
  // table [A,bias_stride], at the first head's distance 0.
  const float* bias = nullptr;
  int32_t bias_stride = 0;
  // The one query row of each sequence of the batch that is needed, [B], in
  // host memory: context [sequences,H] has a row for each sequence. Null: all
  // rows are. Only where Executor::attends_needed_rows.
  const int32_t* needed_rows = nullptr;
  Matrix context;
  // By the Executor of a card: which part of the batch this is (cuda/ops.h).
  cuda::AttentionPath path{};
  const cuda::AttentionWork* work = nullptr;  // [work_count]
  int64_t work_count = 0;
  // By the Executor of a CPU, of one sequence: these heads alone, and these
  // query rows, which context has; with a count of 0 all.
  int32_t first_head = 0;
  int32_t head_count = 0;
  int64_t first_query = 0;
  int64_t query_count = 0;

  bool operator==(const AttentionOp&) const = default;
};

// y [rows,F] = activation(first F columns of x [rows,2F]) * the other F. y must
// not alias x.
struct GateOp {
  static constexpr char kName[] = "gate";
  Matrix x;
  Activation activation = Activation::kNone;
  Matrix y;

  bool operator==(const GateOp&) const = default;
};

// y [rows,cols] = LayerNorm(x + residual), of the sum in float, before it is
// rounded; y may be x or residual. x may be overwritten. Where a product added
// the residual, a device may normalize the rounded sum, the same for every
// batch.
struct AddNormOp {
  static constexpr char kName[] = "add_layer_norm";
  Matrix x;
  Matrix residual;  // data null: none, x is the sum
  NormRef norm;
  // data null: not kept; else x + residual, or x. May be either, but not y.
  Matrix sum;
  Matrix y;
  // By the Executor of a card: y in e4m3 too (cuda/ops.h), or null.
  void* quantized = nullptr;

  bool operator==(const AddNormOp&) const = default;
};

// Row r of y is row rows[r] of x, for some of the batch's sequences, on a card
// for all of them; y must not alias x. Rows of y past them, which pad, are rows
// of x, too.
struct PickRowsOp {
  static constexpr char kName[] = "pick_rows";
  Matrix x;
  // Host memory, read in Run; on a card one list in a pass, which its Executor
  // replaces with its own memory.
  const int32_t* rows = nullptr;  // [row_count]
  int64_t row_count = 0;
  Matrix y;

  bool operator==(const PickRowsOp&) const = default;
};

// The result of one sequence: rows first .. first + length - 1 of a matrix,
// pooled to one or unchanged, from out[out_offset] on. Of length 0: nothing.
struct PoolWork {
  int64_t out_offset;
  int32_t first;
  int32_t length;
  Pooling pooling;
  bool states;     // no pooling: the rows themselves
  bool normalize;  // to length 1
};

// out = the result of each entry of `work` on x [T,cols].
struct PoolOp {
  static constexpr char kName[] = "pool";
  Matrix x;
  // Host memory: work is read in Run, out holds the values after Finish. A
  // card's Executor puts its own memory for them.
  const PoolWork* work = nullptr;  // [work_count]
  int64_t work_count = 0;
  float* out = nullptr;

  bool operator==(const PoolOp&) const = default;
};

}  // namespace encoderd

// Kernel sources see the structs alone.
#if !defined(ENCODERD_ISA) && !defined(__CUDACC__)
#include <variant>

namespace encoderd {

using Op = std::variant<EmbedOp, ProductOp, RotateOp, AttentionOp, GateOp,
                        AddNormOp, PickRowsOp, PoolOp>;

}  // namespace encoderd
#endif

#endif  // ENCODERD_ENGINE_DEVICE_OPS_H_
