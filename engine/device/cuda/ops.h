// The ops of a forward pass on a card, but for the matrix products: each
// starts one kernel on a stream and returns the runtime's error code, 0 for
// success. Pointers are device memory; nothing is checked here: cuda_executor
// does. A row's bits never depend on the rows beside it. Arguments compare by
// value, pointers included (recorded_ops.h).
//
// Elements are what `element` says; gains, biases, sums, softmax, pooling and
// normalisation are float. hidden (H) is a multiple of 8, at most kMaxHidden;
// head_size (D) at most 128, for 16-bit elements a multiple of 8.
//
// Plain types only: this header is read by nvcc.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_OPS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_OPS_H_

#include <cstdint>

namespace encoderd {
namespace cuda {

enum class Element { kFloat, kHalf, kBf16 };

// Where an op is started. overlaps: its kernel may be brought to the card while
// the one before it still runs (programmatic dependent launch; compute
// capability 9.0 or later). It waits for that one before it touches memory, so
// that no bits change.
struct OpStream {
  OpStream(void* stream, bool overlaps = false)  // NOLINT: a stream is a place
      : stream(stream), overlaps(overlaps) {}

  void* stream;  // a cudaStream_t
  bool overlaps;
};

// For which virtual architecture this device's kernels were compiled, 90 for
// compute capability 9.0: overlaps need at least that.
int KernelsPtxVersion(int32_t* version);

constexpr int32_t kMaxHidden = 4096;
constexpr int32_t kMaxHeadSize = 128;

// y [rows,H] = (x - mean) / sqrt(var + eps) * gain + bias
struct NormArgs {
  const float* gain;
  const float* bias;
  float eps;

  bool operator==(const NormArgs&) const = default;
};

struct EmbedTokensArgs {
  Element element;
  const void* token;     // [V,H]
  const void* position;  // [P,H], or null: positions add no rows
  const void* segment;   // [S,H], or null: no segments
  const int32_t* token_ids;
  const int32_t* position_ids;
  const int32_t* segment_ids;
  int64_t rows;
  int32_t hidden;
  NormArgs norm;  // gain null: the sums themselves
  void* out;      // [rows,H]

  bool operator==(const EmbedTokensArgs&) const = default;
};
int EmbedTokens(const EmbedTokensArgs& args, const OpStream& stream);

struct AddLayerNormArgs {
  Element element;
  const void* x;         // [rows,H]
  const void* residual;  // [rows,H], or null: x is the sum already
  int64_t rows;
  int32_t hidden;
  NormArgs norm;
  void* y;  // [rows,H]; may be x or residual
  // Null, or E4m3RowsBytes(rows, H): y as QuantizeRows would write it, bit for
  // bit. Of 16-bit elements only; H is then a multiple of 16.
  void* quantized = nullptr;

  bool operator==(const AddLayerNormArgs&) const = default;
};
int AddLayerNorm(const AddLayerNormArgs& args, const OpStream& stream);

// The kernels of attention, those for long sequences first. Which of them takes
// a sequence is attention_path.h's rule.
enum class AttentionPath : int32_t { kGeneral, kWhole128, kWhole64, kWarp };
constexpr int32_t kAttentionPaths = 4;

// A share of attention in a sequence of `length` tokens that begins at row
// `first`: of the general path queries query_block * AttentionQueries(...) and
// on, of any other all queries. Of length 0: nothing.
struct AttentionWork {
  int32_t first;
  int32_t length;
  int32_t query_block;
  AttentionPath path;
};
// Queries of one AttentionWork of the general path.
constexpr int32_t AttentionQueries(Element element) {
  return element == Element::kFloat ? 16 : 64;
}

struct AttentionArgs {
  Element element;
  AttentionPath path;         // entries of another path are passed over
  const void* qkv;            // [T,3H] as Q|K|V
  const AttentionWork* work;  // [work_count]
  int64_t work_count;
  int32_t heads;
  int32_t head_size;
  // Added to a score after the division by sqrt(D): of head h, query i and key
  // j of a sequence bias[h * bias_stride + j - i]. Null: none. It points into a
  // table [heads,bias_stride], at the first head's distance 0.
  const float* bias;
  int32_t bias_stride;
  void* context;  // [T,H], must not alias qkv

  bool operator==(const AttentionArgs&) const = default;
};
int Attention(const AttentionArgs& args, const OpStream& stream);

enum class ElementWise { kGeluErf, kGeluTanh, kRelu };

// y [rows,cols] = function(y + bias), in place; cols a multiple of 8.
struct BiasActivationArgs {
  Element element;
  ElementWise function;
  const float* bias;  // [cols]
  int64_t rows;
  int32_t cols;
  void* y;

  bool operator==(const BiasActivationArgs&) const = default;
};
int BiasActivation(const BiasActivationArgs& args, const OpStream& stream);

// Rows in e4m3 (8 bits: sign, 4 of exponent, 3 of fraction; no infinities),
// each times a scale of its own, its largest absolute value / 448. They lie as
// codes [rows,cols], one byte each, and behind them the scales [rows] as
// floats; cols is a multiple of 16.
constexpr float kLargestE4m3 = 448.0f;
// A row's largest absolute value counts as no less: no scale is 0.
constexpr float kLeastLargest = 0x1p-100f;
constexpr int64_t E4m3RowsBytes(int64_t rows, int64_t cols) {
  return rows * (cols + 4);
}
// y = x in such rows, to nearest, ties to even. A row with an infinity or a NaN
// gets one, so that whatever it is multiplied with is none the less a NaN.
struct QuantizeRowsArgs {
  Element element;
  const void* x;  // [rows,cols]
  int64_t rows;
  int32_t cols;
  void* y;  // E4m3RowsBytes(rows, cols)
  bool operator==(const QuantizeRowsArgs&) const = default;
};
int QuantizeRows(const QuantizeRowsArgs& args, const OpStream& stream);

enum class PoolKind : int32_t {
  kCls,
  kMean,
  kMax,
  kMeanSqrtLen,
  kWeightedMean,
  kLastToken,
  kStates,  // no pooling: the sequence's rows as floats
};

// One sequence's result: rows first .. first+length-1, written to
// out[out_offset ...]; of length 0: none. Padded to 24 bytes.
struct PoolWork {
  int64_t out_offset;
  int32_t first;
  int32_t length;
  PoolKind kind;
  int32_t normalize;
};

struct PoolArgs {
  Element element;
  const void* x;         // [T,H]
  const PoolWork* work;  // [work_count]
  int64_t work_count;
  int32_t hidden;
  float* out;

  bool operator==(const PoolArgs&) const = default;
};
int Pool(const PoolArgs& args, const OpStream& stream);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_OPS_H_
