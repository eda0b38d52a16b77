#include "client/cpp/encoderctl/remedy.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/error.h"

namespace encoderd::ctl {
namespace {

// Of a text that the server refuses for itself alone.
std::string OfInput(const std::string& reason, const Flags& flags) {
  std::string words;
  if (reason == "INPUT_TOO_LONG" && flags.Has("truncate")) {
    words = "; --truncate=end cuts it";
    if (flags.Has("windows")) {
      absl::StrAppend(&words, ", --windows=16 averages windows of it");
    }
  } else if (reason == "INVALID_UTF8") {
    words = "; convert the input, such as with iconv -t UTF-8";
  } else if (reason == "EMPTY_INPUT") {
    words = "; remove it";
  }
  if (flags.Has("on_error")) {
    absl::StrAppend(&words, words.empty() ? "; " : ", ",
                    "--on_error=skip passes over such texts");
  }
  return words;
}

}  // namespace

std::string Remedy(const absl::Status& status, const Flags& flags,
                   absl::string_view target) {
  const auto details = client::GetErrorDetails(status);
  const std::string reason = details.has_value() ? details->reason : "";
  if (absl::IsInvalidArgument(status) &&
      client::GetInputIndex(status).has_value()) {
    return OfInput(reason, flags);
  }
  if (reason == "TOO_MANY_INPUTS" || reason == "REQUEST_TOO_LARGE") {
    return flags.Has("batch_size") ? "; lower --batch_size" : "";
  }
  if (absl::IsUnauthenticated(status)) {
    return "; --token_file=FILE or ENCODERD_TOKEN_FILE gives the token";
  }
  if (reason == "LOADING" || absl::IsDeadlineExceeded(status)) {
    return "; give it more time with --timeout";
  }
  if (reason == "QUEUE_FULL") {
    return flags.Has("in_flight")
               ? "; lower --in_flight, or wait longer with --timeout"
               : "; wait longer with --timeout";
  }
  if (absl::IsUnavailable(status) && !details.has_value()) {
    // Words that name the address say that there is no connection, and those
    // that end in gRPC's why; others are of one that broke.
    if (absl::StrContains(status.message(), "gRPC says: ")) return "";
    return absl::StrContains(status.message(), target)
               ? "; --target or ENCODERD_TARGET names the server"
               : "; the connection broke: repeat the command";
  }
  if (absl::IsUnimplemented(status) && !details.has_value() &&
      !absl::StrContains(status.message(), "not gRPC")) {
    return "; is this server an encoderd, and as new as this program?";
  }
  return "";
}

std::string DescribeWithoutAdvice(const absl::Status& status,
                                  const Flags& flags) {
  std::string words = client::Describe(status);
  const auto details = client::GetErrorDetails(status);
  if (!details.has_value() || details->reason != "INPUT_TOO_LONG" ||
      !flags.Has("truncate")) {
    return words;
  }
  for (const char* advice : {": split it, ", ": shorten it"}) {
    words = words.substr(0, words.find(advice));
  }
  return words;
}

}  // namespace encoderd::ctl
