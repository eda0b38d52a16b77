// What goes into the pipeline, what comes out, and what it reports meanwhile.
// Plain values; the two interfaces state their thread rules.
#ifndef ENCODERD_SERVER_PIPELINE_REQUEST_H_
#define ENCODERD_SERVER_PIPELINE_REQUEST_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/session.h"
#include "engine/tokenizer/tokenizer.h"
#include "server/pipeline/input.h"

namespace encoderd {

enum class TruncateMode { kNone, kStart, kEnd };

// What is known of the answer's size before it is made: a request whose rows
// cannot fit is REQUEST_TOO_LARGE as soon as their number is known.
struct AnswerLimit {
  int64_t row_bytes = 0;  // at least this many per row; 0: unknown
  int64_t max_bytes = std::numeric_limits<int64_t>::max();

  // The largest number of rows that fits.
  int64_t max_rows() const {
    return row_bytes > 0 ? max_bytes / row_bytes
                         : std::numeric_limits<int64_t>::max();
  }
};

// Who asks.
struct Caller {
  // For fair shares: callers take turns, however much each has queued. Any
  // stable number (a hash of the peer's address or name); 0: one caller.
  uint64_t id = 0;
  // In a model's queue, over all its requests; the limit of the queue applies,
  // too.
  int64_t max_queue_tokens = std::numeric_limits<int64_t>::max();
};

struct PipelineRequest {
  std::vector<Input> inputs;  // at least one
  SequenceOutput output;      // the same for every input
  TruncateMode truncate = TruncateMode::kNone;
  // A text longer than max_len is computed in windows (windows.h) that share
  // this many tokens, and their vectors are averaged, weighted by their tokens
  // without the special ones, then normalized if `output` says so. Pooled
  // output, no truncation; below max_len less the special tokens of a text.
  std::optional<int32_t> window_overlap;
  // Of states: without the rows of the special tokens, those that the template
  // adds to texts, and those of the tokenizer in token ids.
  bool without_special_tokens = false;
  // Of the prompt that precedes each text, for errors; empty: none does.
  std::string prompt_name;
  // What an input at fault (too long, not UTF-8, ids out of range; one that
  // makes the device fail) does. false: the request fails, naming every such
  // input. true: its result has the error, the others are computed.
  bool errors_per_input = false;
  // Set: nothing is computed; the result has each input's Encoding, of any
  // length, and a list of ids is returned. `output`, `truncate` and everything
  // that depends on them have no meaning. Ids beyond max_queue_tokens are
  // counted, not kept.
  std::optional<Tokenizer::EncodeOptions> ids_only;
  AnswerLimit answer;  // a row is a vector, a token's state, or a token
  absl::Time deadline = absl::InfiniteFuture();
  // Set by Pipeline::Submit: how long it may wait for its first batch.
  absl::Duration max_queue_time = absl::InfiniteDuration();
  Caller caller;
};

struct InputResult {
  absl::Status status;        // not OK only with errors_per_input: no values
  std::vector<float> values;  // [H] pooled, or [n,H] states
  int64_t rows = 1;           // 1 pooled, or n, or those of the span
  int64_t token_count = 0;    // before any cut
  bool truncated = false;
  int64_t windows = 0;  // averaged; 0: the input fitted
};

// When a call passed its stages; InfinitePast: it did not get that far.
struct StageTimes {
  absl::Time tokenized = absl::InfinitePast();        // its last input
  absl::Time compute_started = absl::InfinitePast();  // of its first batch
  absl::Time computed = absl::InfinitePast();         // of its last batch
};

struct PipelineResult {
  std::vector<InputResult> outputs;  // one for each input, in order
  std::vector<Encoding> encodings;   // with ids_only, instead of outputs
  int64_t tokens = 0;                // computed
  absl::Duration tokenize_time;      // summed over the inputs
  // Admission to the first batch less tokenize_time, at least 0: the wait for a
  // tokenizer thread and for the batch. Too small if several threads tokenized
  // at once, because tokenize_time is a sum.
  absl::Duration queue_time;
  absl::Duration
      compute_time;  // start of the first batch to the end of the last
  StageTimes stages;
};

// A submitted request. Thread-safe; may outlive the Pipeline.
class PipelineCall {
 public:
  virtual ~PipelineCall() = default;
  // The caller canceled: what is not computed yet never will be. `done` is
  // still called, once, from a pipeline thread or within Submit, never within
  // Cancel.
  virtual void Cancel() = 0;
};

// What a pipeline holds now, and its limits.
struct PipelineFigures {
  int64_t admitted_tokens = 0;  // of calls not answered yet (admission.h)
  int64_t admitted_tokens_limit = 0;
  int64_t admitted_bytes = 0;  // of texts not tokenized yet
  int64_t admitted_bytes_limit = 0;
  int64_t compute_threads = 0;
  int64_t compute_threads_busy = 0;  // with a batch now
  absl::Duration oldest_batch_age;   // of these batches; 0: there is none
  int64_t max_batch_tokens = 0;
};

// The stages of a call; the last one belongs to the adapter.
enum class Stage { kTokenize, kQueue, kBatch, kCompute, kReply };
inline constexpr int kNumStages = static_cast<int>(Stage::kReply) + 1;

// What the pipeline reports while it works; implemented by server/observe.
// Called from any pipeline thread and within Submit, must be thread-safe and
// quick. QueueChanged is called with the queue's lock held, so that the last
// value is current: it must not call the pipeline.
class PipelineObserver {
 public:
  virtual ~PipelineObserver() = default;
  virtual void StageDuration(Stage stage, absl::Duration duration) = 0;
  virtual void InputTokens(int64_t tokens) = 0;  // one admitted sequence
  // One batch. duplicate_tokens: of further sequences, which equal one of the
  // batch and were answered with its result.
  virtual void BatchComputed(int64_t tokens, int64_t sequences,
                             int64_t duplicate_tokens) = 0;
  virtual void QueueChanged(int64_t sequences,
                            int64_t tokens) = 0;  // now waiting, absolute
  // Canceled or expired; up to kTokenize its inputs are not sequences yet.
  virtual void Cancelled(Stage stage, int64_t sequences) = 0;
  // A device fault, once for each batch that failed; lost: the device will
  // never work again. The status carries the ErrorDetail of the callers' errors
  // (DEVICE_FAULT with the same error_id) and the words of the device.
  virtual void DeviceFault(bool lost, const absl::Status& status) = 0;
  // What a device found out about itself, for the log.
  virtual void DeviceNote(const std::string& note) {}
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_REQUEST_H_
