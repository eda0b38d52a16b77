#include "engine/device/cuda/host/norm_proof.h"

#include <cmath>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/device/cuda/host/memory.h"
#include "engine/device/cuda/host/narrow.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int64_t kRandomRows = 32;
constexpr int64_t kRows = kRandomRows + 5;  // not a multiple of a block's
constexpr int64_t kElementBytes = 2;

// Each row's exponents are around a different one; the last rows are special.
std::vector<float> WideRows(int32_t hidden, bool special,
                            std::mt19937* random) {
  std::normal_distribution<float> normal;
  std::vector<float> rows(kRows * hidden);
  for (int64_t r = 0; r < kRows; ++r) {
    const int middle = static_cast<int>(r % 23) - 12;
    for (int32_t h = 0; h < hidden; ++h) {
      const int exponent = middle + static_cast<int>((*random)() % 4);
      rows[r * hidden + h] = std::ldexp(normal(*random), exponent);
    }
  }
  const auto row = [&](int64_t r) {
    return rows.begin() + (kRandomRows + r) * hidden;
  };
  std::fill(row(0), row(1), 0.0f);
  for (auto tiny = row(1); tiny != row(2); ++tiny) *tiny *= 0x1p-20f;
  std::fill(row(2), row(3), 0.0f);
  if (special) {
    row(2)[hidden / 2] = 30000.0f;
    row(3)[hidden - 1] = HUGE_VALF;
    row(4)[0] = -HUGE_VALF;
  }
  return rows;
}

// Gains down to 0, so that rows of y have small values next to large ones.
std::vector<float> Gains(int32_t hidden, std::mt19937* random) {
  std::normal_distribution<float> normal;
  std::vector<float> gains(hidden);
  for (float& gain : gains)
    gain = std::ldexp(normal(*random), -static_cast<int>((*random)() % 12));
  gains[0] = 0.0f;
  return gains;
}

class Proof {
 public:
  Proof(Runtime* runtime, DType element, int32_t hidden, Stream stream)
      : runtime_(runtime),
        element_(element),
        hidden_(hidden),
        stream_(stream) {}

  absl::Status Prepare();
  // Both ways, and the comparison. keeps_sum: of x and the residual.
  absl::Status Run(bool with_residual, bool keeps_sum, NormStart norm);

 private:
  int64_t y_bytes() const { return kRows * hidden_ * kElementBytes; }
  // y, codes and scales, and a sum of as many bytes as y before the codes.
  int64_t codes_at() const { return 2 * y_bytes(); }
  int64_t bytes() const { return codes_at() + E4m3RowsBytes(kRows, hidden_); }

  absl::Status Named(int code, const char* what) const {
    return code == 0 ? absl::OkStatus() : RuntimeError(runtime_, code, what);
  }
  absl::Status Put(const std::vector<char>& from, DeviceBuffer* to) const {
    return TakeCopy(runtime_, from.data(), static_cast<int64_t>(from.size()),
                    "a proof's values", to);
  }
  absl::Status Compare(bool with_residual, bool keeps_sum) const;

  Runtime* const runtime_;
  const DType element_;
  const int32_t hidden_;
  const Stream stream_;
  DeviceBuffer x_, residual_, gain_, bias_;
  // y, the sum, codes and scales, by one op and by two.
  DeviceBuffer fused_, plain_;
  PinnedBuffer fused_on_host_, plain_on_host_;
};

absl::Status Proof::Prepare() {
  std::mt19937 random(1);
  const auto gain = Gains(hidden_, &random);
  const auto bias = std::vector<float>(hidden_, 0.0f);
  absl::Status status =
      Put(Narrow(WideRows(hidden_, true, &random), element_), &x_);
  status.Update(
      Put(Narrow(WideRows(hidden_, false, &random), element_), &residual_));
  status.Update(Put(Narrow(gain, DType::kF32), &gain_));
  status.Update(Put(Narrow(bias, DType::kF32), &bias_));
  for (DeviceBuffer* buffer : {&fused_, &plain_})
    status.Update(buffer->Take(runtime_, bytes(), "a proof"));
  for (PinnedBuffer* buffer : {&fused_on_host_, &plain_on_host_})
    status.Update(buffer->Take(runtime_, bytes(), "a proof"));
  return status;
}

absl::Status Proof::Run(bool with_residual, bool keeps_sum, NormStart norm) {
  const auto matrix = [this](const DeviceBuffer& buffer, int64_t at = 0) {
    return Matrix{buffer.as<char>() + at, kRows, hidden_, element_};
  };
  AddNormOp op;
  op.x = matrix(x_);
  if (with_residual) op.residual = matrix(residual_);
  if (keeps_sum) op.sum = matrix(fused_, y_bytes());
  op.norm = {gain_.as<float>(), bias_.as<float>(), 1e-12f};
  op.y = matrix(fused_);
  op.quantized = fused_.as<char>() + codes_at();
  absl::Status status;
  const auto then = [&](int code, const char* what) {
    if (status.ok()) status = Named(code, what);
  };
  // What is not written differs: bytes of NaNs in one, zeros in the other.
  const std::vector<char> zeros(bytes(), 0);
  then(runtime_->CopyToDeviceAndWait(zeros.data(), bytes(), plain_.data()),
       "a proof's zeros");
  then(runtime_->FillWithNaNs(fused_.data(), bytes(), stream_),
       "a proof's NaNs");
  if (status.ok()) then(norm(op, stream_), "add_layer_norm");
  op.y = matrix(plain_);
  if (keeps_sum) op.sum = matrix(plain_, y_bytes());
  op.quantized = nullptr;
  if (status.ok()) then(Start(op, stream_), "add_layer_norm");
  const QuantizeRowsOp quantize = {op.y, plain_.as<char>() + codes_at()};
  if (status.ok()) then(Start(quantize, stream_), "quantize_rows");
  if (!status.ok()) return status;
  then(runtime_->CopyToHost(fused_.data(), bytes(), fused_on_host_.data(),
                            stream_),
       "a proof's result");
  then(runtime_->CopyToHost(plain_.data(), bytes(), plain_on_host_.data(),
                            stream_),
       "a proof's result");
  then(runtime_->Synchronize(stream_), "a proof");
  return status.ok() ? Compare(with_residual, keeps_sum) : status;
}

absl::Status Proof::Compare(bool with_residual, bool keeps_sum) const {
  const char* fused = fused_on_host_.as<char>();
  const char* plain = plain_on_host_.as<char>();
  for (int64_t i = 0; i < bytes(); ++i) {
    const int64_t code = i - codes_at();
    const bool of_y = i < y_bytes(), of_sum = !of_y && code < 0;
    if (fused[i] == plain[i] || (of_sum && !keeps_sum)) continue;
    const bool of_scale = code >= kRows * hidden_;
    const int64_t row = of_y       ? i / kElementBytes / hidden_
                        : of_sum   ? (i - y_bytes()) / kElementBytes / hidden_
                        : of_scale ? (code - kRows * hidden_) / 4
                                   : code / hidden_;
    return absl::InternalError(absl::StrCat(
        "LayerNorm in rows of ", hidden_, with_residual ? " with" : " without",
        " a residual gives row ", row,
        of_y       ? " another value"
        : of_sum   ? " another sum"
        : of_scale ? " another scale in e4m3"
                   : " another code in e4m3",
        " than LayerNorm and quantize_rows: byte ",
        static_cast<int>(static_cast<uint8_t>(fused[i])), " for ",
        static_cast<int>(static_cast<uint8_t>(plain[i]))));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ProveNormQuantizes(Runtime* runtime, DType element, int32_t hidden,
                                Stream stream, std::string* figures,
                                NormStart norm) {
  Proof proof(runtime, element, hidden, stream);
  absl::Status status = proof.Prepare();
  for (const bool with_residual : {true, false}) {
    for (const bool keeps_sum : {false, true})
      if (status.ok()) status = proof.Run(with_residual, keeps_sum, norm);
  }
  *figures = absl::StrCat("LayerNorm in e4m3: 4 times ", kRows, " rows of ",
                          hidden, " columns, ",
                          status.ok() ? "all bytes equal" : status.message());
  return status;
}

}  // namespace cuda
}  // namespace encoderd
