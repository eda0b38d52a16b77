// A Model that computes nothing: FakeDevice and FakeTokenizer behind the
// engine's front door, for tests of the server.
#ifndef ENCODERD_TESTS_SUPPORT_FAKE_MODEL_H_
#define ENCODERD_TESTS_SUPPORT_FAKE_MODEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/model.h"
#include "tests/support/fake_session.h"
#include "tests/support/fake_tokenizer.h"

namespace encoderd {

struct FakeModelOptions {
  int32_t positions = 512;  // rows of the position table
  int32_t max_len = 256;    // without ModelOptions::max_len
  int32_t segments = 2;
  int32_t layers = 2;
  int32_t hidden_size = 8;
  int64_t max_batch_tokens = 2048;
  int32_t sessions = 1;
  int32_t least_sessions = 1;
  bool pauses = false;
  bool hashing = true;        // false: values are 0 and nothing is logged, for
                              // benchmarks
  absl::Duration load_time;   // Load sleeps so long
  absl::Duration batch_time;  // each batch sleeps so long ...
  absl::Duration token_time;  // ... and so long for each of its tokens
  int32_t lost_after = 0;     // 0: never; else the device is lost after this
                              // many batches, those of warming up counted
  int32_t stuck_after = 0;  // 0: never; else no batch after this many ever ends
  std::string warning;      // of ModelConfig::warnings; empty: none
  std::string prompt_name;  // of one more prompt, "x: "; empty: none
  int32_t poison = -1;      // a batch with this token fails; -1: none
  int32_t stuck = -1;       // a batch with this token never ends; -1: none
  // From here on the position table is as if it had not been trained; -1: no
  // row is.
  int32_t random_from = -1;
};

// Has the prompts "query" ("q: ") and "passage" ("p: "), mean pooling,
// normalized.
class FakeModel final : public Model {
 public:
  explicit FakeModel(const FakeModelOptions& options);

  // As Model::Load: sleeps, applies max_len, refuses one above the table.
  static absl::StatusOr<std::shared_ptr<FakeModel>> Load(
      const FakeModelOptions& fake, const ModelOptions& options);

  const ModelInfo& info() const override { return info_; }
  const Tokenizer& tokenizer() const override { return tokenizer_; }
  // Sinusoids, up to random_from.
  const HostMatrix& position_rows() const override { return position_rows_; }
  absl::StatusOr<std::unique_ptr<Session>> NewSession(
      const SessionOptions& options) const override;

  FakeDevice& device() { return device_; }
  FakeTokenizer& fake_tokenizer() { return tokenizer_; }

 private:
  ModelInfo info_;
  FakeTokenizer tokenizer_;
  HostMatrix position_rows_;
  mutable FakeDevice device_;
};

// "name:number,name:number" -> options, for programs that get them as the
// folder of --model: positions, max_len, load_ms, batch_us, token_us,
// lost_after_batches, stuck_after_batches, poison_token, stuck_token, sessions,
// hidden_size, hashing.
// INVALID_ARGUMENT for another name.
absl::StatusOr<FakeModelOptions> ParseFakeModelOptions(const std::string& text);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_FAKE_MODEL_H_
