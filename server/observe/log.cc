#include "server/observe/log.h"

#include <unistd.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace encoderd {
namespace {

bool NeedsQuotes(absl::string_view value) {
  if (value.empty()) return true;
  for (char c : value) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == '"' || byte == '\\' || byte == 0x7f) return true;
  }
  return false;
}

const char* LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

}  // namespace

LogFields& LogFields::Add(absl::string_view key, const absl::AlphaNum& value) {
  if (!text_.empty()) text_ += ' ';
  if (NeedsQuotes(value.Piece())) {
    // Within double quotes a single one needs no escape.
    absl::StrAppend(&text_, key, "=\"",
                    absl::StrReplaceAll(absl::Utf8SafeCEscape(value.Piece()),
                                        {{"\\'", "'"}}),
                    "\"");
  } else {
    absl::StrAppend(&text_, key, "=", value);
  }
  return *this;
}

LogFields& LogFields::Append(absl::string_view pairs) {
  if (!text_.empty() && !pairs.empty()) text_ += ' ';
  absl::StrAppend(&text_, pairs);
  return *this;
}

void Log(LogLevel level, absl::string_view event, const LogFields& fields) {
  const std::string line =
      absl::StrCat("ts=",
                   absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(),
                                    absl::UTCTimeZone()),
                   " level=", LevelName(level), " event=", event,
                   fields.text().empty() ? "" : " ", fields.text(), "\n");
  // One write a line: lines of several threads never mix. A log that cannot be
  // written must not stop the server.
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace encoderd
