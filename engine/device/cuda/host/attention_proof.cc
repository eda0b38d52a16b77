#include "engine/device/cuda/host/attention_proof.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/device/cuda/host/attention_formula.h"
#include "engine/device/cuda/host/attention_proof_inputs.h"
#include "engine/device/cuda/host/memory.h"
#include "engine/device/cuda/host/narrow.h"

namespace encoderd {
namespace cuda {
namespace {

// Bound of the difference between two paths, in a column whose largest value
// among the sequence's is v; u is the element's unit roundoff. Scores have the
// same bits on every path: the same products in the same order. Each path
// rounds probabilities once and divides by the sum of those not rounded: u v at
// most. It rounds the result once: u v (1 + u). Float sums over up to 128 keys,
// exp2 of 2 units and, in fp16, probabilities under 2^-14 add less than u v /
// 16; fp16 results under 2^-14 are rounded by up to 2^-25. Twice, for two
// paths:
constexpr double kUnits = 4 + 1.0 / 8;
constexpr double kLeast = 0x1p-24;

constexpr char kWhat[] = "attention's proof";

class Proof {
 public:
  Proof(Runtime* runtime, DType element, AttentionProofInputs inputs,
        const Reach& reach, Stream stream)
      : runtime_(*runtime),
        element_(element),
        inputs_(std::move(inputs)),
        reach_(reach),
        stream_(stream) {}

  absl::Status Run(AttentionPath path, bool biased, const AttentionStart& fast,
                   const AttentionStart& general);
  // The largest difference, as a part of its bound; infinite with a NaN.
  double Difference() const;
  // Likewise, from the formula; its bound is half of two paths', and what float
  // scores add.
  double FromFormula(bool biased) const;
  // Sequences that have other bits alone than in company.
  int64_t OtherBits() const;

 private:
  // Which results: the path's, the general path's, the path's of each sequence
  // alone.
  enum Which { kFast, kGeneral, kAlone };
  int64_t bytes() const { return 3 * values() * int64_t{sizeof(uint16_t)}; }
  int64_t values() const { return inputs_.tokens() * inputs_.hidden; }
  const uint16_t* results(Which which) const {
    return results_.as<uint16_t>() + which * values();
  }
  std::vector<float> Qkv() const {
    return Widen(inputs_.qkv.data(), static_cast<int64_t>(inputs_.qkv.size()),
                 element_);
  }
  // The largest absolute value of each column of a sequence's values.
  std::vector<double> LargestValues(int64_t sequence,
                                    const std::vector<float>& qkv) const;
  absl::Status Take(bool biased);
  // Puts all on the stream, the copy back too, up to the first error.
  int Start(AttentionPath path, bool biased, const AttentionStart& fast,
            const AttentionStart& general);

  Runtime& runtime_;
  const DType element_;
  const AttentionProofInputs inputs_;
  const Reach reach_;
  const Stream stream_;
  DeviceBuffer qkv_, bias_, work_, contexts_;
  PinnedBuffer results_;
};

absl::Status Proof::Take(bool biased) {
  const auto put = [&](const auto& items, DeviceBuffer* memory) {
    const auto size = static_cast<int64_t>(items.size() * sizeof(items[0]));
    return TakeCopy(&runtime_, items.data(), size, kWhat, memory);
  };
  absl::Status status = put(inputs_.qkv, &qkv_);
  if (status.ok()) status = put(inputs_.work, &work_);
  if (status.ok() && biased) status = put(inputs_.bias, &bias_);
  if (status.ok()) status = contexts_.Take(&runtime_, bytes(), kWhat);
  if (status.ok()) status = results_.Take(&runtime_, bytes(), kWhat);
  return status;
}

int Proof::Start(AttentionPath path, bool biased, const AttentionStart& fast,
                 const AttentionStart& general) {
  // The batch as if it began at `row` of the memory.
  const auto rows = [this](const DeviceBuffer& memory, int64_t row,
                           int64_t cols) {
    return Matrix{memory.as<uint16_t>() + row * cols, inputs_.tokens(), cols,
                  element_};
  };
  AttentionOp op;
  op.heads = inputs_.heads;
  op.reach = reach_;
  op.head_size = static_cast<int32_t>(inputs_.hidden / inputs_.heads);
  if (biased) {
    op.bias = bias_.as<float>() + inputs_.bias_stride / 2;
    op.bias_stride = inputs_.bias_stride;
  }
  int code = runtime_.FillWithNaNs(contexts_.data(), bytes(), stream_);
  op.work = work_.as<AttentionWork>();
  // Over the next `count` entries, of sequences that begin at `row`.
  const auto run = [&](const AttentionStart& start, int64_t count, int64_t row,
                       Which which) {
    op.path = which == kGeneral ? AttentionPath::kGeneral : path;
    op.qkv = rows(qkv_, row, 3 * inputs_.hidden);
    op.work_count = count;
    op.context =
        rows(contexts_, which * inputs_.tokens() + row, inputs_.hidden);
    if (code == 0) code = start(op, stream_);
    op.work += count;
  };
  run(fast, inputs_.sequences(), 0, kFast);
  run(general, inputs_.general_work, 0, kGeneral);
  for (int64_t b = 0; b < inputs_.sequences(); ++b)
    run(fast, 1, inputs_.ends[b], kAlone);
  if (code != 0) return code;
  return runtime_.CopyToHost(contexts_.data(), bytes(), results_.data(),
                             stream_);
}

absl::Status Proof::Run(AttentionPath path, bool biased,
                        const AttentionStart& fast,
                        const AttentionStart& general) {
  absl::Status status = Take(biased);
  if (!status.ok()) return status;
  int code = Start(path, biased, fast, general);
  // Also after an error: nothing may be in flight when memory is given back.
  const int last = runtime_.Synchronize(stream_);
  if (code == 0) code = last;
  return code == 0 ? status : RuntimeError(&runtime_, code, kWhat);
}

std::vector<double> Proof::LargestValues(int64_t sequence,
                                         const std::vector<float>& qkv) const {
  std::vector<double> largest(inputs_.hidden);
  for (int64_t row = inputs_.ends[sequence]; row < inputs_.ends[sequence + 1];
       ++row) {
    for (int64_t c = 0; c < inputs_.hidden; ++c) {
      const double value = qkv[(3 * row + 2) * inputs_.hidden + c];
      largest[c] = std::max(largest[c], std::fabs(value));
    }
  }
  return largest;
}

double Proof::Difference() const {
  const int64_t hidden = inputs_.hidden;
  const std::vector<float> qkv = Qkv();
  const std::vector<float> fast = Widen(results(kFast), values(), element_);
  const std::vector<float> general =
      Widen(results(kGeneral), values(), element_);
  double worst = 0;
  for (int64_t b = 0; b < inputs_.sequences(); ++b) {
    const std::vector<double> largest = LargestValues(b, qkv);
    for (int64_t at = inputs_.ends[b] * hidden;
         at < inputs_.ends[b + 1] * hidden; ++at) {
      const double bound =
          kUnits * UnitRoundoff(element_) * largest[at % hidden] + kLeast;
      const double difference = std::fabs(double{fast[at]} - general[at]);
      if (std::isnan(difference)) return INFINITY;
      worst = std::max(worst, difference / bound);
    }
  }
  return worst;
}

double Proof::FromFormula(bool biased) const {
  const int64_t hidden = inputs_.hidden, head_size = hidden / inputs_.heads;
  const float* bias =
      biased ? inputs_.bias.data() + inputs_.bias_stride / 2 : nullptr;
  const std::vector<float> qkv = Qkv();
  const std::vector<float> fast = Widen(results(kFast), values(), element_);
  double worst = 0;
  for (int64_t b = 0; b < inputs_.sequences(); ++b) {
    const std::vector<double> largest = LargestValues(b, qkv);
    const int64_t first = inputs_.ends[b] * hidden;
    const AttentionByFormula want = ComputeAttention(
        qkv.data() + 3 * first, inputs_.lengths[b], inputs_.heads,
        static_cast<int32_t>(head_size), reach_, bias, inputs_.bias_stride);
    for (int64_t i = 0; i < inputs_.lengths[b] * hidden; ++i) {
      const double units =
          kUnits / 2 * UnitRoundoff(element_) + want.errors[i / head_size];
      const double bound = units * largest[i % hidden] + kLeast;
      const double difference = std::fabs(fast[first + i] - want.context[i]);
      if (std::isnan(difference)) return INFINITY;
      worst = std::max(worst, difference / bound);
    }
  }
  return worst;
}

int64_t Proof::OtherBits() const {
  int64_t other = 0;
  for (int64_t b = 0; b < inputs_.sequences(); ++b) {
    const int64_t first = inputs_.ends[b] * inputs_.hidden;
    const int64_t count = inputs_.lengths[b] * inputs_.hidden;
    if (std::memcmp(results(kFast) + first, results(kAlone) + first,
                    count * sizeof(uint16_t)) != 0)
      ++other;
  }
  return other;
}

std::string ReachText(const Reach& reach) {
  if (reach == Reach()) return "";
  return absl::StrCat(", reach ", reach.left, " and ", reach.right);
}

}  // namespace

const char* PathName(AttentionPath path) {
  switch (path) {
    case AttentionPath::kWarp:
      return "warp";
    case AttentionPath::kWhole64:
      return "whole64";
    case AttentionPath::kWhole128:
      return "whole128";
    case AttentionPath::kGeneral:
      break;
  }
  return "general";
}

absl::Status ProveAttention(Runtime* runtime, DType element, int32_t head_size,
                            int32_t heads, bool biased, const Reach& reach,
                            AttentionPath path, Stream stream,
                            std::string* figures, const AttentionStart& fast,
                            const AttentionStart& general) {
  *figures = "nothing to prove";
  if (path == AttentionPath::kGeneral || !HasPath(element, head_size, path))
    return absl::OkStatus();
  *figures = "did not run";
  const AttentionProofInputs inputs =
      MakeAttentionProofInputs(element, head_size, heads, path);
  Proof proof(runtime, element, inputs, reach, stream);
  absl::Status status = proof.Run(path, biased, fast, general);
  if (!status.ok()) return status;
  const double difference = proof.Difference();
  const int64_t other = proof.OtherBits();
  *figures =
      absl::StrFormat("largest difference %.2f of the bound", difference);
  double from_formula = 0;
  if (reach != Reach()) {
    from_formula = proof.FromFormula(biased);
    absl::StrAppendFormat(figures, ", from the formula %.2f", from_formula);
  }
  if (difference <= 1 && from_formula <= 1 && other == 0)
    return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("attention's path ", PathName(path), " (",
                   element == DType::kF16 ? "fp16" : "bf16", ", head size ",
                   head_size, biased ? ", with a bias" : "", ReachText(reach),
                   "): ", *figures, "; ", other, " of ", inputs.sequences(),
                   " sequences have different bits alone and in a batch"));
}

}  // namespace cuda
}  // namespace encoderd
