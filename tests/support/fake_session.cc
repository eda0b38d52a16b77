#include "tests/support/fake_session.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/support/patience.h"

namespace encoderd {
namespace {

class FakeSession final : public Session {
 public:
  FakeSession(FakeDevice* device, int number)
      : device_(*device), number_(number) {}
  int64_t max_batch_tokens() const override {
    return device_.max_batch_tokens();
  }
  int64_t scratch_bytes() const override { return 1000; }
  absl::Status Run(const PackedBatch& batch,
                   absl::Span<const SequenceOutput> outputs,
                   ForwardResult* result) override {
    const absl::Status status = device_.Run(number_, batch, outputs, result);
    while (pauses_ != nullptr && pauses_->Wanted()) pauses_->Run();
    return status;
  }
  void SetPauses(Pauses* pauses) override { pauses_ = pauses; }

 private:
  Pauses* pauses_ = nullptr;
  FakeDevice& device_;
  const int number_;
};

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

uint64_t SpecHash(const SequenceOutput& output) {
  uint64_t hash = Mix(17, static_cast<uint64_t>(output.kind));
  hash = Mix(hash, static_cast<uint64_t>(output.pooling));
  hash = Mix(hash, output.normalize ? 1 : 0);
  return Mix(hash, static_cast<uint64_t>(output.layer));
}

// Tokens begin .. end-1 of the batch as `output` wants them, appended.
void AppendOutput(const PackedBatch& batch, int64_t begin, int64_t end,
                  const SequenceOutput& output, int32_t hidden, bool hashing,
                  std::vector<float>* values) {
  const int64_t rows =
      output.kind == SequenceOutput::Kind::kStates ? end - begin : 1;
  if (!hashing) {
    values->resize(values->size() + rows * hidden, 0.0f);
    return;
  }
  uint64_t hash = SpecHash(output);
  for (int64_t t = begin; t < end; ++t) {
    hash = Mix(hash, static_cast<uint64_t>(batch.token_ids[t]));
    hash = Mix(hash, static_cast<uint64_t>(batch.segment_ids[t]));
    hash = Mix(hash, static_cast<uint64_t>(batch.position_ids[t]));
  }
  for (int64_t i = 0; i < rows * hidden; ++i) {
    const uint64_t bits = Mix(hash, static_cast<uint64_t>(i)) >> 40;  // 24 bits
    values->push_back(static_cast<float>(bits) / (1 << 23) - 1.0f);
  }
}

bool HoldsAny(const PackedBatch& batch, int64_t begin, int64_t end,
              const std::set<int32_t>& ids) {
  if (ids.empty()) return false;
  return std::any_of(batch.token_ids.begin() + begin,
                     batch.token_ids.begin() + end,
                     [&ids](int32_t id) { return ids.count(id) > 0; });
}

}  // namespace

std::unique_ptr<Session> FakeDevice::NewSession() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::make_unique<FakeSession>(this, sessions_++);
}

std::vector<std::unique_ptr<Session>> FakeDevice::NewSessions(int count) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < count; ++i) sessions.push_back(NewSession());
  return sessions;
}

std::vector<float> FakeDevice::Expected(const TokenSequence& sequence,
                                        const IdLimits& limits,
                                        const SequenceOutput& output) const {
  PackedBatch batch;
  batch.Append(sequence, limits);
  std::vector<float> values;
  AppendOutput(batch, 0, batch.num_tokens(), output, hidden_size_, true,
               &values);
  return values;
}

void FakeDevice::SetLatency(absl::Duration base, absl::Duration per_token) {
  std::lock_guard<std::mutex> lock(mutex_);
  base_latency_ = base;
  token_latency_ = per_token;
}

void FakeDevice::SetLogging(bool on) {
  std::lock_guard<std::mutex> lock(mutex_);
  logging_ = on;
}

void FakeDevice::SetHashing(bool on) {
  std::lock_guard<std::mutex> lock(mutex_);
  hashing_ = on;
}

void FakeDevice::PoisonToken(int32_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  poison_.insert(id);
}

void FakeDevice::NanToken(int32_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  nan_.insert(id);
}

void FakeDevice::ThrowOnToken(int32_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  throwing_.insert(id);
}

void FakeDevice::FailNext(int batches, absl::Status status) {
  std::lock_guard<std::mutex> lock(mutex_);
  fail_next_ = batches;
  fail_status_ = std::move(status);
}

void FakeDevice::FailWhen(std::function<bool()> strikes) {
  std::lock_guard<std::mutex> lock(mutex_);
  strikes_ = std::move(strikes);
}

void FakeDevice::Lose() {
  std::lock_guard<std::mutex> lock(mutex_);
  left_until_lost_ = 0;
}

void FakeDevice::LoseAfter(int batches) {
  std::lock_guard<std::mutex> lock(mutex_);
  left_until_lost_ = batches;
}

void FakeDevice::CloseGate() {
  std::lock_guard<std::mutex> lock(mutex_);
  gate_closed_ = true;
}

void FakeDevice::OpenGate() {
  std::lock_guard<std::mutex> lock(mutex_);
  gate_closed_ = false;
  let_through_ = 0;
  held_.clear();
  changed_.notify_all();
}

void FakeDevice::HoldToken(int32_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  held_.insert(id);
}

void FakeDevice::LetThrough(int batches) {
  std::lock_guard<std::mutex> lock(mutex_);
  let_through_ += batches;
  changed_.notify_all();
}

bool FakeDevice::WaitForBatchesAtGate(int batches) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(kPatience),
                           [&] { return at_gate_ >= batches; });
}

int FakeDevice::batches_at_gate() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return at_gate_;
}

std::vector<FakeDevice::Batch> FakeDevice::log() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return log_;
}

int64_t FakeDevice::rows_computed() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return rows_computed_;
}

size_t FakeDevice::log_size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return log_.size();
}

int FakeDevice::BatchesWithToken(int32_t id, size_t from) const {
  std::lock_guard<std::mutex> lock(mutex_);
  int batches = 0;
  for (size_t i = from; i < log_.size(); ++i) {
    const std::vector<Row>& rows = log_[i].rows;
    batches += std::any_of(rows.begin(), rows.end(), [id](const Row& row) {
      return std::count(row.token_ids.begin(), row.token_ids.end(), id) > 0;
    });
  }
  return batches;
}

bool FakeDevice::SawToken(int32_t id) const {
  return BatchesWithToken(id, 0) > 0;
}

absl::Duration FakeDevice::PassGate(const PackedBatch& batch) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto held = [&] {
    return HoldsAny(batch, 0, batch.num_tokens(), held_);
  };
  if (gate_closed_ || held()) {
    ++at_gate_;
    changed_.notify_all();
    changed_.wait(
        lock, [&] { return !held() && (!gate_closed_ || let_through_ > 0); });
    if (gate_closed_) --let_through_;
    --at_gate_;
  }
  return base_latency_ + batch.num_tokens() * token_latency_;
}

absl::Status FakeDevice::TakeFault(const PackedBatch& batch) {
  if (left_until_lost_ == 0) {
    return absl::DataLossError("the fake device fell off the bus");
  }
  if (left_until_lost_ > 0) --left_until_lost_;
  if (batch.num_tokens() > max_batch_tokens_) {
    return absl::InternalError(absl::StrCat("a batch of ", batch.num_tokens(),
                                            " tokens; at most ",
                                            max_batch_tokens_));
  }
  if (fail_next_ > 0) {
    --fail_next_;
    return fail_status_;
  }
  if (strikes_ != nullptr && strikes_()) {
    return absl::InternalError("the fake device was told to fail");
  }
  if (HoldsAny(batch, 0, batch.num_tokens(), poison_)) {
    return absl::InternalError("the batch holds a poisonous token");
  }
  return absl::OkStatus();
}

absl::Status FakeDevice::Run(int session, const PackedBatch& batch,
                             absl::Span<const SequenceOutput> outputs,
                             ForwardResult* result) {
  const absl::Duration latency = PassGate(batch);
  if (latency > absl::ZeroDuration()) absl::SleepFor(latency);
  std::set<int32_t> nan;
  bool hashing = true;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const absl::Status fault = TakeFault(batch);
    if (logging_) {
      Batch entry{session, batch.num_tokens(), !fault.ok(), {}};
      for (int64_t b = 0; b < batch.num_sequences(); ++b) {
        entry.rows.push_back(
            {{batch.token_ids.begin() + batch.cu_seqlens[b],
              batch.token_ids.begin() + batch.cu_seqlens[b + 1]}});
      }
      log_.push_back(std::move(entry));
    }
    if (!fault.ok()) return fault;
    if (HoldsAny(batch, 0, batch.num_tokens(), throwing_)) {
      throw std::runtime_error("the fake session was told to throw");
    }
    rows_computed_ += batch.num_sequences();
    nan = nan_;
    hashing = hashing_;
  }
  result->values.clear();
  result->offsets.assign(1, 0);
  for (int64_t b = 0; b < batch.num_sequences(); ++b) {
    const int64_t begin = batch.cu_seqlens[b];
    const int64_t end = batch.cu_seqlens[b + 1];
    AppendOutput(batch, begin, end, outputs[b], hidden_size_, hashing,
                 &result->values);
    if (HoldsAny(batch, begin, end, nan)) {
      result->values.back() = std::numeric_limits<float>::quiet_NaN();
    }
    result->offsets.push_back(static_cast<int64_t>(result->values.size()));
  }
  return absl::OkStatus();
}

}  // namespace encoderd
