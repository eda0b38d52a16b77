// A device that computes nothing and remembers everything: Sessions for tests.
//
// An output's values are a hash of the sequence's own ids and of what was asked
// for, so that the same input gives the same bits in any batch, on any Session.
// A pass pauses when its batch is logged. FakeDevice is the test's
// handle: latency, faults, a gate, and a log of every row that was computed.
// Thread-safe; it must outlive its Sessions.
#ifndef ENCODERD_TESTS_SUPPORT_FAKE_SESSION_H_
#define ENCODERD_TESTS_SUPPORT_FAKE_SESSION_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/base/batch.h"
#include "engine/session.h"

namespace encoderd {

class FakeDevice {
 public:
  struct Row {
    std::vector<int32_t> token_ids;
  };
  struct Batch {
    int session = 0;
    int64_t tokens = 0;
    bool failed = false;
    std::vector<Row> rows;
  };

  explicit FakeDevice(int64_t max_batch_tokens, int32_t hidden_size = 8)
      : max_batch_tokens_(max_batch_tokens), hidden_size_(hidden_size) {}

  // Sessions are numbered from 0 in the order they were made.
  std::unique_ptr<Session> NewSession();
  std::vector<std::unique_ptr<Session>> NewSessions(int count);

  // What a Session gives for `sequence`: [H], or [n,H] for states.
  std::vector<float> Expected(const TokenSequence& sequence,
                              const IdLimits& limits,
                              const SequenceOutput& output) const;

  // A batch sleeps `base` plus `per_token` for each of its tokens.
  void SetLatency(absl::Duration base, absl::Duration per_token);
  void SetLogging(bool on);  // on at first
  void SetHashing(bool on);  // on at first; off: values are 0, for benchmarks

  // Every batch that holds the token fails with INTERNAL.
  void PoisonToken(int32_t id);
  // Every sequence that holds the token comes out with a NaN.
  void NanToken(int32_t id);
  // Every batch that holds the token throws.
  void ThrowOnToken(int32_t id);
  // The next `batches` fail with `status`, then all is well again.
  void FailNext(int batches, absl::Status status);
  // Asked before each batch, which fails with INTERNAL where the answer is yes.
  void FailWhen(std::function<bool()> strikes);
  // Every batch from now on fails with DATA_LOSS, or every one after the next
  // `batches`.
  void Lose();
  void LoseAfter(int batches);

  // Closed: batches wait at the start of Run.
  void CloseGate();
  void OpenGate();
  // Every batch that holds the token waits at the gate, even an open one, until
  // the next OpenGate.
  void HoldToken(int32_t id);
  // Lets exactly `batches` through a closed gate.
  void LetThrough(int batches);
  // Waits until this many batches are at the gate; false after kPatience.
  bool WaitForBatchesAtGate(int batches);
  int batches_at_gate() const;

  std::vector<Batch> log() const;
  size_t log_size() const;
  // How many batches logged at `from` or later hold the token.
  int BatchesWithToken(int32_t id, size_t from) const;
  // Rows computed, those of failed batches not counted.
  int64_t rows_computed() const;
  // Whether a row that holds the token was computed or tried.
  bool SawToken(int32_t id) const;

  // For its Sessions.
  absl::Status Run(int session, const PackedBatch& batch,
                   absl::Span<const SequenceOutput> outputs,
                   ForwardResult* result);
  int64_t max_batch_tokens() const { return max_batch_tokens_; }

 private:
  absl::Duration PassGate(const PackedBatch& batch);
  absl::Status TakeFault(const PackedBatch& batch);

  const int64_t max_batch_tokens_;
  const int32_t hidden_size_;

  mutable std::mutex mutex_;  // all below
  std::condition_variable changed_;
  int sessions_ = 0;
  absl::Duration base_latency_;
  absl::Duration token_latency_;
  bool logging_ = true;
  bool hashing_ = true;
  std::set<int32_t> poison_, nan_, throwing_, held_;
  int fail_next_ = 0;
  absl::Status fail_status_;
  std::function<bool()> strikes_;
  int left_until_lost_ = -1;  // batches; negative: it is never lost
  bool gate_closed_ = false;
  int let_through_ = 0;
  int at_gate_ = 0;
  int64_t rows_computed_ = 0;
  std::vector<Batch> log_;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_FAKE_SESSION_H_
