#include "client/cpp/encoderctl/remedy.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "client/cpp/error.h"
#include "client/cpp/handshake.h"

namespace encoderd::ctl {
namespace {

// Of a text that the server refuses for itself alone.
std::string OfInput(const std::string& reason, const Flags& flags) {
  std::string words;
  absl::string_view joint = ", ";
  if (reason == "INPUT_TOO_LONG" && flags.Has("truncate")) {
    words = "; --truncate=end cuts it";
    if (flags.Has("windows")) {
      absl::StrAppend(&words, ", --windows=16 averages windows of it");
    }
  } else if (reason == client::kInvalidUtf8) {
    words =
        "; if the file has another encoding: iconv -f ENCODING -t UTF-8 FILE";
    joint = "; ";
  } else if (reason == "EMPTY_INPUT") {
    words = "; remove it";
  }
  if (flags.Has("on_error")) {
    absl::StrAppend(&words, words.empty() ? "; " : joint,
                    "--on_error=skip passes over such texts");
  }
  return words;
}

// The server begins its words about an option with the field of the request.
void PutFlag(absl::string_view field, absl::string_view message,
             const Flags& flags, std::string* words) {
  absl::string_view flag = field;
  absl::ConsumePrefix(&flag, "options.");
  absl::ConsumeSuffix(&flag, ".overlap");
  if (!flags.Has(flag) || !absl::StartsWith(message, field)) return;
  words->replace(words->size() - message.size(), message.size(),
                 absl::StrCat("--", flag, message.substr(field.size())));
}

// The message of ExplainHandshake says what to correct; this is where.
std::string OfNoConnection(client::ConnectionFault fault) {
  switch (fault) {
    case client::ConnectionFault::kRefused:
    case client::ConnectionFault::kNoName:
    case client::ConnectionFault::kSilent:
      return " (--target or ENCODERD_TARGET)";
    case client::ConnectionFault::kHttp:
      return "; correct --target or ENCODERD_TARGET";
    case client::ConnectionFault::kUnreachable:
      return "; --target or ENCODERD_TARGET sets the address";
    case client::ConnectionFault::kSecurity:
    case client::ConnectionFault::kUnknown:
      break;
  }
  return "";
}

}  // namespace

std::string Remedy(const absl::Status& status, const Flags& flags) {
  const auto details = client::GetErrorDetails(status);
  const std::string reason = client::GetReason(status);
  if (absl::IsInvalidArgument(status) &&
      client::GetInputIndex(status).has_value()) {
    return OfInput(reason, flags);
  }
  if (reason == client::kTooManyInputs || reason == client::kRequestTooLarge) {
    return flags.Has("batch_size") ? "; lower --batch_size" : "";
  }
  if (absl::IsUnauthenticated(status)) {
    return "; --token_file=FILE or ENCODERD_TOKEN_FILE gives the token";
  }
  if (reason == client::kLoading || absl::IsDeadlineExceeded(status)) {
    // With max_queue_ms the limit was the server's, and so is the remedy.
    const bool in_server =
        details.has_value() && details->metadata.count("max_queue_ms") > 0;
    return in_server ? "" : "; raise --timeout";
  }
  if (reason == "QUEUE_FULL") {
    return flags.Has("in_flight")
               ? "; lower --in_flight, or wait longer with --timeout"
               : "; wait longer with --timeout";
  }
  const auto fault = client::GetConnectionFault(status);
  if (fault.has_value()) return OfNoConnection(*fault);
  if (absl::IsUnavailable(status) && !details.has_value()) {
    return "; the connection broke: repeat the command";
  }
  if (absl::IsUnimplemented(status) && !details.has_value()) {
    return "; is this server an encoderd, and as new as this program?";
  }
  return "";
}

std::string DescribeInFlags(const absl::Status& status, const Flags& flags) {
  std::string words = client::Describe(status);
  const auto details = client::GetErrorDetails(status);
  if (details.has_value() && details->reason == "ROWS_OUT_OF_RANGE") {
    return absl::StrReplaceAll(words, {{"first_row ", "--first_row "},
                                       {"row_count ", "--row_count "}});
  }
  if (details.has_value() && details->violations.size() == 1) {
    PutFlag(details->violations[0].field, status.message(), flags, &words);
  }
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
