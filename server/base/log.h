// The log: one line per event on standard error, "key=value" pairs.
//
//   ts=2026-01-31T12:00:00.000Z level=info event=serving model=all-MiniLM-L6-v2
//
// A value with a space, quote, control byte or nothing in it is quoted and
// escaped, so that a line stays one line; a value with characters that move or
// hide others (control characters beyond ASCII, changes of direction) or that
// is not UTF-8 is escaped byte by byte. Lines never hold input text, tokens or
// ids: only settings, numbers, fixed names and error messages of this program
// and its libraries.
//
// Thread-safe; a line is written as a whole. Never blocks: while standard error
// is blocked (a pipe that nobody reads), lines are dropped and counted, and the
// next line that is written has the number (event=log_lines_lost). A terminal
// that this user may not open is the exception.
#ifndef ENCODERD_SERVER_BASE_LOG_H_
#define ENCODERD_SERVER_BASE_LOG_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace encoderd {

// Collects pairs; values are escaped as above, keys are not.
class LogFields {
 public:
  LogFields& Add(absl::string_view key, const absl::AlphaNum& value);
  // left_out=LINES, unless it is 0.
  LogFields& AddLeftOut(int64_t lines);
  // Pairs from another LogFields::text().
  LogFields& Append(absl::string_view pairs);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

enum class LogLevel { kInfo, kWarning, kError };

// Longer lines end after this many bytes, with " cut=true": a pipe accepts as
// many without blocking.
inline constexpr size_t kMaxLogLine = 4096;

void Log(LogLevel level, absl::string_view event,
         const LogFields& fields = LogFields());

// Lines dropped since the process started.
int64_t LogLinesLost();

// How often a source of lines that others can provoke may write: `burst` lines
// at once, then one each `interval`. Not thread-safe.
class LogLimit {
 public:
  LogLimit(int burst, absl::Duration interval)
      : burst_(burst), interval_(interval) {}
  bool Allows(absl::Time now);

 private:
  const int burst_;
  const absl::Duration interval_;
  absl::Time used_until_ = absl::InfinitePast();  // each line uses an interval
};

// As LogLimit, and the lines that it leaves out are counted. Thread-safe.
class CountingLogLimit {
 public:
  CountingLogLimit(int burst, absl::Duration interval)
      : limit_(burst, interval) {}
  // Empty: leave the line out. Otherwise write it, with the number of those
  // that were left out since the last one (AddLeftOut).
  std::optional<int64_t> Allows(absl::Time now);

 private:
  absl::Mutex mu_{absl::kConstInit};
  LogLimit limit_ ABSL_GUARDED_BY(mu_);
  int64_t left_out_ ABSL_GUARDED_BY(mu_) = 0;
};

// The rate for lines about calls that failed by the server's fault, which
// calls can cause.
inline constexpr int kFaultLinesAtOnce = 100;
inline constexpr absl::Duration kFaultLineInterval = absl::Milliseconds(100);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_BASE_LOG_H_
