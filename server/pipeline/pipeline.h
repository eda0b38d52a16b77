// The way of a request behind RPC: tokenizer pool -> admission -> batcher ->
// Session. Knows no gRPC.
//
// Pipeline owns every thread that it starts (tokenize-N,
// batch-DEVICE-N, aside).
// Submit never blocks: it may be called on a gRPC thread. Memory is bounded by
// max_queue_tokens and max_queue_bytes, not by load, whatever is asked for.
#ifndef ENCODERD_SERVER_PIPELINE_PIPELINE_H_
#define ENCODERD_SERVER_PIPELINE_PIPELINE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/batch.h"
#include "engine/session.h"
#include "engine/tokenizer/tokenizer.h"

namespace encoderd {

enum class TruncateMode { kNone, kStart, kEnd };

struct TextInput {
  std::string text;
};
struct PairInput {
  std::string first;
  std::string second;
};
// An input found at fault before it came here, for a request with
// errors_per_input; `error` is complete.
struct RefusedInput {
  absl::Status error;
};
using PipelineInput =
    std::variant<TextInput, PairInput, TokenSequence, RefusedInput>;

// What is known of the answer's size before it is made: a request whose rows
// cannot fit is REQUEST_TOO_LARGE as soon as their number is known.
struct AnswerLimit {
  int64_t row_bytes = 0;  // at least so many for each row; 0: not known
  int64_t max_bytes = std::numeric_limits<int64_t>::max();

  // The most rows that may fit.
  int64_t max_rows() const {
    return row_bytes > 0 ? max_bytes / row_bytes
                         : std::numeric_limits<int64_t>::max();
  }
};

struct PipelineRequest {
  std::vector<PipelineInput> inputs;  // at least one
  SequenceOutput output;              // the same for every input
  TruncateMode truncate = TruncateMode::kNone;
  // A text longer than max_len is computed in windows (windows.h) that share so
  // many tokens, and their vectors averaged, each weighing its tokens without
  // the special ones, then normalised if `output` says so. Pooled output, no
  // truncation; below max_len less the special tokens of a text.
  std::optional<int32_t> window_overlap;
  // Of states: without the rows of the special tokens, those that the template
  // adds to texts, and those of the tokenizer in token ids.
  bool without_special_tokens = false;
  // What an input at fault (too long, not UTF-8, ids out of range; one that
  // makes the device fail) does. false: the request fails, naming every such
  // input. true: its own result has the error, the others are computed.
  bool errors_per_input = false;
  AnswerLimit answer;  // a row is a vector, or a token's state
  absl::Time deadline = absl::InfiniteFuture();
  // Who asks, for fair shares: callers take turns, whatever each has queued.
  // Any stable number (a hash of the peer's address or name); 0: one caller.
  uint64_t caller = 0;
};

struct InputResult {
  absl::Status status;        // not OK only with errors_per_input: no values
  std::vector<float> values;  // [H] pooled, or [n,H] states
  int64_t rows = 1;           // 1 pooled, or n, or those of the span
  int64_t token_count = 0;    // before any cut
  bool truncated = false;
  int64_t windows = 0;  // averaged; 0: the input fitted
};

struct PipelineResult {
  std::vector<InputResult> outputs;  // one for each input, in order
  int64_t tokens = 0;                // computed
  absl::Duration tokenize_time;      // summed over the inputs
  // Admission to the first batch less tokenize_time, at least 0: waiting, for a
  // tokenizer thread and for the batch. Too little where several threads
  // tokenised at once, for tokenize_time is a sum.
  absl::Duration queue_time;
  absl::Duration
      compute_time;  // start of the first batch to the end of the last
};

// Texts to tokenise without computing anything. Shares the tokenizer pool and
// the bounds on waiting bytes and on tokens with requests: ids beyond
// max_queue_tokens are counted, not kept.
struct TokenizePipelineRequest {
  std::vector<PipelineInput> inputs;  // at least one
  Tokenizer::EncodeOptions options;
  AnswerLimit answer;  // a row is a token
  absl::Time deadline = absl::InfiniteFuture();
};

// A submitted request. Thread-safe; may outlive the Pipeline.
class PipelineCall {
 public:
  virtual ~PipelineCall() = default;
  // The caller went away: what is not computed yet never will be. `done` is
  // still called, once, from a pipeline thread and never from within Cancel.
  virtual void Cancel() = 0;
};

// What the pipeline reports while it works; implemented by server/observe.
// Called from any pipeline thread, must be thread-safe and quick. QueueChanged
// is called with the queue's lock held, so that the last value is the right
// one: it must not call the pipeline.
class PipelineObserver {
 public:
  enum class Stage { kTokenize, kQueue, kBatch, kCompute };
  virtual ~PipelineObserver() = default;
  virtual void StageDuration(Stage stage, absl::Duration duration) = 0;
  virtual void InputTokens(int64_t tokens) = 0;  // one admitted input
  virtual void BatchComputed(int64_t tokens,
                             int64_t sequences) = 0;  // one batch
  virtual void QueueChanged(int64_t inputs,
                            int64_t tokens) = 0;  // now waiting, absolute
  virtual void Cancelled(Stage stage,
                         int64_t inputs) = 0;  // cancelled or expired
  // A device fault, once for each batch that failed; lost: the device will
  // never work again. The status carries the ErrorDetail of the callers' errors
  // (DEVICE_FAULT with the same error_id) and the device's own words.
  virtual void DeviceFault(bool lost, const absl::Status& status) = 0;
  // What a device has found out about itself, for the log.
  virtual void DeviceNote(const std::string& note) {}
};

struct PipelineOptions {
  int64_t max_batch_tokens = 0;  // 0: the Sessions' own limit
  int64_t max_queue_tokens =
      0;  // tokens waiting and computing; beyond it QUEUE_FULL
  int32_t tokenizer_threads = 1;
  int64_t max_queue_bytes =
      64 << 20;  // text waiting to be tokenised; beyond it QUEUE_FULL
  std::string device = "cpu";  // names the threads: batch-cpu-0, ...
};

class Pipeline {
 public:
  using Done = std::function<void(absl::StatusOr<PipelineResult>)>;
  using TokenizeDone =
      std::function<void(absl::StatusOr<std::vector<Encoding>>)>;

  // `tokenizer`, `observer` outlive the pipeline; one batch thread a Session.
  // Throws where memory or a thread cannot be had, and leaves nothing behind.
  static std::unique_ptr<Pipeline> Create(
      const Tokenizer* tokenizer, const IdLimits& limits,
      std::vector<std::unique_ptr<Session>> sessions,
      const PipelineOptions& options, PipelineObserver* observer);
  // Refuses new work, waits for accepted work, joins the threads. Must not run
  // on a pipeline thread (within `done`).
  virtual ~Pipeline() = default;

  // Calls `done` exactly once, from a pipeline thread or from within Submit
  // (refusals). Errors carry an ErrorDetail (engine/base/error.h) with
  // input_index where one input is to blame (and all violations of the request,
  // up to kMaxViolations): those of ValidateSequence and Tokenizer; QUEUE_FULL
  // and REQUEST_TOO_LARGE; EXPIRED_IN_QUEUE; CANCELLED_IN_QUEUE; DRAINING;
  // DEVICE_FAULT.
  virtual std::shared_ptr<PipelineCall> Submit(PipelineRequest request,
                                               Done done) = 0;

  // As Submit, for ids only: one Encoding an input, of any length. Token id
  // inputs are checked and given back. Errors: those of Tokenizer and of
  // ValidateSequence but INPUT_TOO_LONG; QUEUE_FULL, REQUEST_TOO_LARGE,
  // EXPIRED_IN_QUEUE, CANCELLED_IN_QUEUE, DRAINING.
  virtual std::shared_ptr<PipelineCall> SubmitTokenize(
      TokenizePipelineRequest request, TokenizeDone done) = 0;

  // Runs `work` once on a thread of its own kind (side_lane.h), or from within
  // SubmitWork when it is refused, with OK or with the status that it must
  // answer instead of working. For work that takes longer than a gRPC thread
  // may. One at a time, the others wait in order. Null where it was refused by
  // a pipeline that takes nothing more. Errors: QUEUE_FULL (calls),
  // EXPIRED_IN_QUEUE, CANCELLED_IN_QUEUE, DRAINING.
  virtual std::shared_ptr<PipelineCall> SubmitWork(
      uint64_t caller, absl::Time deadline,
      std::function<void(const absl::Status&)> work) = 0;

  // From now on Submit answers DRAINING (UNAVAILABLE); accepted work goes on.
  virtual void StartDraining() = 0;
  // Requests accepted and not yet answered.
  virtual int64_t in_flight() const = 0;
  // Waits until in_flight() is 0 or the time is up; true if it is 0.
  virtual bool WaitIdle(absl::Time until) = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_PIPELINE_H_
