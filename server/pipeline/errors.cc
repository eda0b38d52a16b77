#include "server/pipeline/errors.h"

#include <algorithm>
#include <atomic>
#include <random>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/error.h"
#include "server/pipeline/reasons.h"

namespace encoderd {

namespace {

// The payload is the pause in milliseconds.
constexpr char kPauseUrl[] = "encoderd/RetryPause";
// Marks a CallerFullError; callers do not see it.
constexpr char kCallerFullUrl[] = "encoderd/CallerFull";

// A QueueUnit in messages.
struct UnitWords {
  absl::string_view unit;
  absl::string_view holder;  // who holds it, if not one caller
  absl::string_view about;   // before an amount: it is an estimate
};

const UnitWords& WordsOf(QueueUnit unit) {
  // The tokens of a text are estimated until it is tokenized.
  static constexpr UnitWords kWords[] = {
      {"tokens", "the queue holds ", "about "},
      {"bytes", "the queue holds ", ""},
      {"calls", "the queue holds ", ""},
      {"streams", "the server has ", ""},
  };
  return kWords[static_cast<int>(unit)];
}

absl::Status FullError(const UnitWords& words, absl::string_view holder,
                       int64_t queued, int64_t request, int64_t limit,
                       absl::string_view limit_name) {
  const absl::string_view unit = words.unit;
  const absl::string_view about = words.about;
  return MakeError(absl::StatusCode::kResourceExhausted,
                   absl::StrCat(holder, about, queued, " ", unit,
                                " and this request adds ", about, request, "; ",
                                limit_name, " is ", limit, ": retry later"),
                   {reason::kQueueFull,
                    {{absl::StrCat("queued_", unit), absl::StrCat(queued)},
                     {absl::StrCat("request_", unit), absl::StrCat(request)},
                     {"limit", absl::StrCat(limit)}},
                    ""});
}

}  // namespace

absl::Status QueueFullError(QueueUnit unit, int64_t queued, int64_t request,
                            int64_t limit, absl::string_view limit_name) {
  const UnitWords& words = WordsOf(unit);
  return FullError(words, words.holder, queued, request, limit, limit_name);
}

absl::Status CallerFullError(QueueUnit unit, int64_t queued, int64_t request,
                             int64_t limit, absl::string_view limit_name) {
  absl::Status status = FullError(WordsOf(unit), "this caller has ", queued,
                                  request, limit, limit_name);
  status.SetPayload(kCallerFullUrl, absl::Cord());
  return status;
}

absl::Status StreamsFullError(int64_t open, int64_t limit) {
  return QueueFullError(QueueUnit::kStreams, open, 1, limit, "--max_streams");
}

bool IsCallerFull(const absl::Status& status) {
  return status.GetPayload(kCallerFullUrl).has_value();
}

absl::Status WithRetryPause(absl::Status status,
                            std::optional<absl::Duration> pause) {
  if (!pause.has_value()) return status;
  status.SetPayload(
      kPauseUrl, absl::Cord(absl::StrCat(absl::ToInt64Milliseconds(*pause))));
  return status;
}

std::optional<absl::Duration> GetRetryPause(const absl::Status& status) {
  const auto payload = status.GetPayload(kPauseUrl);
  int64_t ms = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &ms)) {
    return std::nullopt;
  }
  return absl::Milliseconds(ms);
}

absl::Status RequestTooLargeError(QueueUnit unit, int64_t request,
                                  int64_t limit, absl::string_view taker) {
  const absl::string_view word = WordsOf(unit).unit;
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("the request has ", request, " ", word, "; ", taker, " ",
                   limit,
                   ": send fewer inputs per request, or split a long text"),
      {reason::kRequestTooLarge,
       {{absl::StrCat("request_", word), absl::StrCat(request)},
        {"limit", absl::StrCat(limit)}},
       "inputs"});
}

absl::Status AnswerTooLargeError(int64_t bytes, int64_t limit,
                                 absl::string_view field) {
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("the answer has at least ", bytes, " bytes; at most ", limit,
                   " fit into a message: request ",
                   field == "inputs"
                       ? "fewer inputs at once, or split a long text"
                       : "less"),
      {reason::kRequestTooLarge,
       {{"reply_bytes", absl::StrCat(bytes)}, {"limit", absl::StrCat(limit)}},
       std::string(field)});
}

absl::Status ExpiredError(absl::Duration max_queue_time) {
  if (max_queue_time == absl::InfiniteDuration()) {
    return MakeError(absl::StatusCode::kDeadlineExceeded,
                     "the caller's deadline passed while the request waited: "
                     "allow more time, or send fewer inputs per request",
                     {reason::kExpiredInQueue, {}, ""});
  }
  const int64_t ms = absl::ToInt64Milliseconds(max_queue_time);
  return MakeError(
      absl::StatusCode::kDeadlineExceeded,
      absl::StrCat(
          "the request waited for ", ms,
          " ms, the server's --max_queue_time: retry when the server is "
          "less busy, or raise --max_queue_time"),
      {reason::kExpiredInQueue, {{"max_queue_ms", absl::StrCat(ms)}}, ""});
}

absl::Status CancelledError() {
  return MakeError(absl::StatusCode::kCancelled,
                   "the caller canceled the request while it was waiting",
                   {reason::kCancelledInQueue, {}, ""});
}

absl::Status DrainingError() {
  return MakeError(absl::StatusCode::kUnavailable,
                   "the server is shutting down and accepts no new requests: "
                   "retry on another server",
                   {reason::kDraining, {}, ""});
}

absl::Status NoInputsError() {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "inputs is empty; give at least one",
                   {reason::kNoInputs, {}, "inputs"});
}

std::string NewErrorId() {
  static const uint64_t start =
      (uint64_t{std::random_device()()} << 32) | std::random_device()();
  static std::atomic<uint64_t> count{0};
  // An odd multiplier makes ids of one process differ in every digit.
  const uint64_t id = start + count.fetch_add(1) * 0x9E3779B97F4A7C15u;
  return absl::StrCat(absl::Hex(id, absl::kZeroPad16));
}

absl::Status DeviceFaultError(absl::StatusCode code, absl::string_view error_id,
                              absl::string_view what) {
  return MakeError(
      code, absl::StrCat(what, "; error id ", error_id),
      {reason::kDeviceFault, {{"error_id", std::string(error_id)}}, ""});
}

absl::Status DeviceFaultForLog(const absl::Status& cause,
                               absl::string_view error_id) {
  return MakeError(
      cause.code(), cause.message(),
      {reason::kDeviceFault, {{"error_id", std::string(error_id)}}, ""});
}

absl::Status InternalFaultError(absl::string_view error_id) {
  return MakeError(
      absl::StatusCode::kInternal,
      absl::StrCat("an internal error; error id ", error_id),
      {reason::kInternalFault, {{"error_id", std::string(error_id)}}, ""});
}

absl::Status WithAdvice(const absl::Status& fault) {
  std::optional<ErrorDetail> detail = GetErrorDetail(fault);
  if (!detail || detail->reason != reason::kInputTooLong) return fault;
  absl::string_view advice =
      ": split it, or set options.truncate (Encode: truncate) to TRUNCATE_END, "
      "or options.windows (Embed)";
  if (absl::StrContains(detail->field, ".tokens")) {
    advice = ": shorten it; token ids are never cut";
  } else if (absl::EndsWith(detail->field, ".pair")) {
    advice =
        ": shorten it, or set options.truncate (Encode: truncate) to "
        "TRUNCATE_END; windows are for texts only";
  }
  if (detail->violations.empty()) {
    detail->violations.push_back({detail->field, std::string(fault.message())});
  }
  return MakeError(fault.code(), absl::StrCat(fault.message(), advice),
                   *detail);
}

absl::Status WithPrompt(const absl::Status& status, absl::string_view prompt) {
  const std::optional<ErrorDetail> detail = GetErrorDetail(status);
  if (!detail || detail->reason != reason::kInputTooLong) return status;
  return MakeError(
      status.code(),
      absl::StrCat(status.message(), ", its prompt '", prompt, "' included"),
      *detail);
}

InputFault MakeInputFault(int64_t index, absl::string_view content,
                          const absl::Status& error) {
  const std::string input = absl::StrCat("inputs[", index, "]");
  ErrorDetail detail = GetErrorDetail(error).value_or(ErrorDetail{});
  detail.metadata["input_index"] = absl::StrCat(index);
  // A field of the engine is the content itself ("text"), a part of a pair
  // ("first") or a list of token ids ("tokens.ids"); ids from a tokenizer are
  // not a field of the request.
  absl::string_view field = detail.field;
  if (content != "tokens" && absl::StartsWith(field, "tokens")) field = "";
  if (field.empty()) {
    field = content == "tokens" ? "tokens.ids" : content;
  }
  detail.field =
      content.empty()
          ? input
          : absl::StrCat(input, ".",
                         content == "pair" && field != "pair" ? "pair." : "",
                         field);
  absl::string_view message = error.message();
  const bool named = absl::ConsumePrefix(&message, "the input");
  return {index,
          MakeError(error.code(),
                    absl::StrCat(input, named ? "" : ": ", message), detail)};
}

absl::Status CombineInputFaults(std::vector<InputFault> faults, int64_t total) {
  std::sort(faults.begin(), faults.end(),
            [](const InputFault& a, const InputFault& b) {
              return a.index < b.index;
            });
  if (faults.size() > kMaxViolations) faults.resize(kMaxViolations);
  const absl::Status& first = faults.front().status;
  if (total == 1) return WithAdvice(first);
  ErrorDetail detail = GetErrorDetail(first).value_or(ErrorDetail{});
  for (const InputFault& fault : faults) {
    const std::optional<ErrorDetail> one = GetErrorDetail(fault.status);
    detail.violations.push_back(
        {one ? one->field : "inputs", std::string(fault.status.message())});
  }
  detail.metadata["more_inputs"] = absl::StrCat(total - 1);
  const int64_t omitted = total - static_cast<int64_t>(faults.size());
  if (omitted > 0) {
    detail.metadata["omitted_violations"] = absl::StrCat(omitted);
  }
  return WithAdvice(MakeError(
      first.code(),
      absl::StrCat(first.message(), " (and ", total - 1, " more)"), detail));
}

}  // namespace encoderd
