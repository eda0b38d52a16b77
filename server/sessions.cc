#include "server/sessions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/batch.h"

namespace encoderd {
namespace {

constexpr int kWarmUpTokens = 16;
// The size of a batch of small requests: a small part of another batch's time,
// and short in itself.
constexpr int64_t kSmallPartOfABatch = 8;
constexpr int64_t kMostSmallTokens = 128;

// DATA_LOSS of a Session is a lost device; of a model, a corrupt file.
absl::Status OfDevice(const absl::Status& status) {
  if (!absl::IsDataLoss(status)) return status;
  return absl::UnavailableError(
      absl::StrCat("the device is lost: ", status.message()));
}

// One short pass: its Session's first caller does not pay for page faults, and
// a corrupt checkpoint is found before the first call.
absl::Status WarmUp(const ModelInfo& info, Session* session) {
  TokenSequence sequence;
  sequence.token_ids.assign(
      std::min<int64_t>(
          {kWarmUpTokens, info.limits.max_len, session->max_batch_tokens()}),
      0);
  PackedBatch batch;
  batch.Append(sequence, info.limits);
  SequenceOutput output;
  output.pooling = info.config.pooling;
  output.normalize = info.config.normalize;
  ForwardResult result;
  const absl::Status status = session->Run(batch, {output}, &result);
  if (!status.ok()) return OfDevice(status);
  for (float value : result.values) {
    if (!std::isfinite(value)) {
      return absl::DataLossError(
          "a test pass computed values that are not finite: with "
          "--dtype=fp16, try bf16 or fp32; else the weights may be corrupt: "
          "fetch them again");
    }
  }
  return absl::OkStatus();
}

absl::Status AddSessions(const Model& model, const SessionOptions& options,
                         int32_t count,
                         std::vector<std::unique_ptr<Session>>* sessions) {
  for (int32_t i = 0; i < count; ++i) {
    auto session = model.NewSession(options);
    if (!session.ok()) return OfDevice(session.status());
    sessions->push_back(*std::move(session));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t ServingSessions::scratch_bytes() const {
  int64_t bytes = 0;
  for (const auto* some : {&sessions, &pause_sessions}) {
    for (const auto& session : *some) bytes += session->scratch_bytes();
  }
  return bytes;
}

absl::StatusOr<ServingSessions> NewSessions(const ServerConfig& config,
                                            const Model& model) {
  const ModelInfo& info = model.info();
  const int32_t count =
      config.threads > 0 ? config.threads : info.preferred_sessions;
  if (count < info.least_sessions) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--threads=", count, ": the ", info.least_sessions,
        " GPUs of --device=", config.device, " need one thread each"));
  }
  SessionOptions options;
  options.max_batch_tokens = config.max_batch_tokens;
  ServingSessions serving;
  absl::Status status = AddSessions(model, options, count, &serving.sessions);
  if (!status.ok()) return status;
  // On a CPU one pass finds a corrupt checkpoint for all Sessions, which share
  // the weights. A pass of each took 2 s with 64 of them.
  const size_t passes = info.pauses ? 1 : serving.sessions.size();
  for (size_t i = 0; i < passes; ++i) {
    status = WarmUp(info, serving.sessions[i].get());
    if (!status.ok()) return status;
  }
  if (!info.pauses) return serving;
  SessionOptions small;
  small.max_batch_tokens = std::clamp<int64_t>(
      serving.sessions.front()->max_batch_tokens() / kSmallPartOfABatch, 1,
      kMostSmallTokens);
  small.max_len = static_cast<int32_t>(small.max_batch_tokens);
  small.in_pauses = true;
  status = AddSessions(model, small, count, &serving.pause_sessions);
  if (!status.ok()) return status;
  return serving;
}

}  // namespace encoderd
