// The log: one line an event on standard error, "key=value" pairs.
//
//   ts=2026-01-31T12:00:00.000Z level=info event=serving model=all-MiniLM-L6-v2
//
// A value with a space, quote, control byte or nothing in it is quoted and
// escaped, so that a line stays a line. Lines never hold input text, tokens or
// ids: only settings, numbers, names of our own and error messages made by this
// program. Thread-safe; a line is written whole.
#ifndef ENCODERD_SERVER_OBSERVE_LOG_H_
#define ENCODERD_SERVER_OBSERVE_LOG_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace encoderd {

// Collects pairs; values are escaped as above, keys are ours.
class LogFields {
 public:
  LogFields& Add(absl::string_view key, const absl::AlphaNum& value);
  // Pairs made by another LogFields::text().
  LogFields& Append(absl::string_view pairs);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

enum class LogLevel { kInfo, kWarning, kError };

void Log(LogLevel level, absl::string_view event,
         const LogFields& fields = LogFields());

}  // namespace encoderd

#endif  // ENCODERD_SERVER_OBSERVE_LOG_H_
