// How a card starts the ops of a pass (device/ops.h) but for the matrix
// products, and those that only a card has. Each starts one kernel on a stream
// and returns the runtime's error code, 0 for success. Pointers are device
// memory, but UploadOp's `from` and, in a small pass, PoolOp's `out` are the
// host's pinned memory, at the host's address; nothing is checked here:
// cuda_executor does. A row's bits never depend on other rows.
//
// Elements are what an op's matrices say, all the same; gains, biases, sums,
// softmax, pooling and normalization are float. hidden (H) is a multiple of 8,
// at most kMaxHidden; head_size (D) at most 128, for 16-bit elements a multiple
// of 8.
//
// Plain types only: this header is read by nvcc.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_OPS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_OPS_H_

#include <cstdint>

#include "engine/device/ops.h"

namespace encoderd {
namespace cuda {

// Where an op is started. overlaps: its kernel may be brought to the card while
// the one before it still runs (programmatic dependent launch; compute
// capability 9.0 or later). It waits for that one before it touches what a
// pass writes, so that no bits change. workspace: what a product on this stream
// may overwrite, ProductFactory::workspace_bytes() of device memory; null where
// that is 0.
struct OpStream {
  OpStream(void* stream, bool overlaps = false,  // NOLINT: a stream is a place
           void* workspace = nullptr)
      : stream(stream), overlaps(overlaps), workspace(workspace) {}
  OpStream WithOverlaps(bool overlapping) const {
    return OpStream(stream, overlapping, workspace);
  }

  void* stream;  // a cudaStream_t
  bool overlaps;
  void* workspace;
};

// For which virtual architecture this device's kernels were compiled, 90 for
// compute capability 9.0: overlaps need at least that.
int KernelsPtxVersion(int32_t* version);

// Tokens up to which a pass is bound by its launches, so that a graph serves.
constexpr int64_t kMostGraphRows = 2048;

constexpr int32_t kMaxHidden = 4096;
constexpr int32_t kMaxHeadSize = 128;

// The kernels of attention, those for long sequences first. Which of them takes
// a sequence is attention_path.h's rule.
enum class AttentionPath : int32_t { kGeneral, kWhole128, kWhole64, kWarp };
constexpr int32_t kAttentionPaths = 4;

// A share of attention in a sequence of `length` tokens that begins at row
// `first`: of the general path queries query_block * AttentionQueries(...) and
// on, of any other all queries. Of length 0: nothing. An AttentionOp takes the
// entries of its path and skips the others.
struct AttentionWork {
  int32_t first;
  int32_t length;
  int32_t query_block;
  AttentionPath path;
};
// Queries of one AttentionWork of the general path.
constexpr int32_t AttentionQueries(DType element) {
  return element == DType::kF32 ? 16 : 64;
}

// Rows in e4m3 (8 bits: sign, 4 of exponent, 3 of fraction; no infinities),
// each times its own scale, its largest absolute value / 448. Memory holds the
// codes [rows,cols], one byte each, and behind them the scales [rows] as
// floats; cols is a multiple of 16.
constexpr float kLargestE4m3 = 448.0f;
// A row's largest absolute value counts as no less: no scale is 0.
constexpr float kLeastLargest = 0x1p-100f;
constexpr int64_t E4m3RowsBytes(int64_t rows, int64_t cols) {
  return rows * (cols + 4);
}

// y [rows,cols] = activation(y + bias), in place; cols a multiple of 8.
struct BiasActivationOp {
  static constexpr char kName[] = "bias_gelu";
  Activation activation = Activation::kNone;  // the caller sets another
  const float* bias = nullptr;                // [cols]
  Matrix y;

  bool operator==(const BiasActivationOp&) const = default;
};

// y = x [rows,cols] in e4m3, to nearest, ties to even. A row with an infinity
// or a NaN gets one, so that whatever it is multiplied with is none the less a
// NaN.
struct QuantizeRowsOp {
  static constexpr char kName[] = "quantize_rows";
  Matrix x;
  void* y = nullptr;  // E4m3RowsBytes(rows, cols)

  bool operator==(const QuantizeRowsOp&) const = default;
};

// Copies a batch from the host's pinned memory to the card's. Both are aligned
// to 16 and hold `bytes` rounded up to a multiple of 16, which are copied.
struct UploadOp {
  static constexpr char kName[] = "upload";
  const void* from = nullptr;
  void* to = nullptr;
  int64_t bytes = 0;

  bool operator==(const UploadOp&) const = default;
};

int Start(const UploadOp& op, const OpStream& stream);
int Start(const EmbedOp& op, const OpStream& stream);
int Start(const RotateOp& op, const OpStream& stream);
int Start(const AttentionOp& op, const OpStream& stream);
// quantized of AddNormOp: null, or E4m3RowsBytes(rows, H): y as QuantizeRowsOp
// would write it, bit for bit. Of 16-bit elements only; H is then a multiple of
// 16.
int Start(const AddNormOp& op, const OpStream& stream);
int Start(const GateOp& op, const OpStream& stream);
int Start(const PickRowsOp& op, const OpStream& stream);
int Start(const PoolOp& op, const OpStream& stream);
int Start(const BiasActivationOp& op, const OpStream& stream);
int Start(const QuantizeRowsOp& op, const OpStream& stream);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_OPS_H_
