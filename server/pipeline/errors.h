// The pipeline's own errors, each an absl::Status with an ErrorDetail
// (engine/base/error.h). Pure functions.
#ifndef ENCODERD_SERVER_PIPELINE_ERRORS_H_
#define ENCODERD_SERVER_PIPELINE_ERRORS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace encoderd {

// What a limit counts.
enum class QueueUnit { kTokens, kBytes, kCalls, kStreams };

// RESOURCE_EXHAUSTED, QUEUE_FULL; metadata: queued_UNIT and request_UNIT (UNIT:
// "tokens", "bytes", "calls" or "streams"), limit. limit_name: what sets the
// limit.
absl::Status QueueFullError(QueueUnit unit, int64_t queued, int64_t request,
                            int64_t limit,
                            absl::string_view limit_name = "the limit");
// The same, for the limits of one caller.
absl::Status CallerFullError(QueueUnit unit, int64_t queued, int64_t request,
                             int64_t limit,
                             absl::string_view limit_name = "the limit");
// QUEUE_FULL: the server has `open` streams, and --max_streams is `limit`.
absl::Status StreamsFullError(int64_t open, int64_t limit);
// `status` with the advice to retry after `pause`, and that advice; nullopt:
// none.
absl::Status WithRetryPause(absl::Status status,
                            std::optional<absl::Duration> pause);
std::optional<absl::Duration> GetRetryPause(const absl::Status& status);
// An INPUT_TOO_LONG of a text that follows this prompt, which its tokens count
// with; any other error as it is.
absl::Status WithPrompt(const absl::Status& status, absl::string_view prompt);
// Whether `status` is a CallerFullError: others find room.
bool IsCallerFull(const absl::Status& status);
// INVALID_ARGUMENT, REQUEST_TOO_LARGE: it would not fit into an empty queue;
// `taker`: what has the limit.
absl::Status RequestTooLargeError(
    QueueUnit unit, int64_t request, int64_t limit,
    absl::string_view taker = "the queue holds at most");
// INVALID_ARGUMENT, REQUEST_TOO_LARGE (reply_bytes, limit): the answer would
// have at least this many bytes, and one message may have `limit`. field: what
// to reduce, "inputs"; empty for a request without inputs.
absl::Status AnswerTooLargeError(int64_t bytes, int64_t limit,
                                 absl::string_view field);
// DEADLINE_EXCEEDED, EXPIRED_IN_QUEUE: the caller's deadline passed or, if
// max_queue_time (max_queue_ms) is finite, that limit did.
absl::Status ExpiredError(
    absl::Duration max_queue_time = absl::InfiniteDuration());
absl::Status CancelledError();  // CANCELLED, CANCELLED_IN_QUEUE
absl::Status DrainingError();   // UNAVAILABLE, DRAINING
absl::Status NoInputsError();   // INVALID_ARGUMENT, NO_INPUTS

// A number that identifies an incident in the answer and in the log.
std::string NewErrorId();

// INTERNAL (the request was being computed) or UNAVAILABLE (it was waiting and
// the device is lost), DEVICE_FAULT. The message does not expose details of the
// host; the log has them under the same error_id.
absl::Status DeviceFaultError(absl::StatusCode code, absl::string_view error_id,
                              absl::string_view what);
// The same incident in the words of the device, for the log.
absl::Status DeviceFaultForLog(const absl::Status& cause,
                               absl::string_view error_id);
// INTERNAL, INTERNAL_FAULT: something threw.
absl::Status InternalFaultError(absl::string_view error_id);

// What is wrong with one input; `status` is complete (field, input_index).
struct InputFault {
  int64_t index = 0;
  absl::Status status;
};

// `error` of ValidateSequence or Tokenizer, for input `index`: the message
// begins with inputs[index], the field is inputs[index].CONTENT with the
// content's name ("text", "pair", "tokens"; without content it is the input
// itself), the metadata has input_index.
InputFault MakeInputFault(int64_t index, absl::string_view content,
                          const absl::Status& error);

// A fault that is an answer: its message ends with what the caller can do, if
// it is INPUT_TOO_LONG; its violations are without that advice. The clients in
// client/ cut the advice off, and give it with their own names.
absl::Status WithAdvice(const absl::Status& fault);

// One status for all faults of a request: that of the first input at fault,
// with the first kMaxViolations listed, and advice. `faults` is not empty, in
// any order; total also counts those that are not in `faults`.
absl::Status CombineInputFaults(std::vector<InputFault> faults, int64_t total);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_ERRORS_H_
