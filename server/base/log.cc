#include "server/base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
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

// The first character of `text` (not empty) and its bytes; 0 bytes: not UTF-8.
// Overlong forms and surrogates pass, because they hide nothing.
std::pair<uint32_t, size_t> Decode(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc0 || byte(0) >= 0xf8 || text.size() < size) return {0, 0};
  uint32_t character = byte(0) & (0x7f >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0, 0};
    character = character << 6 | (byte(i) & 0x3f);
  }
  return {character, size};
}

// Unicode's controls beyond ASCII, line and paragraph separators, and what
// changes the direction of the text after it (UAX 9).
bool Misleads(uint32_t c) {
  return (c >= 0x80 && c <= 0x9f) || c == 0x61c || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

bool NeedsByteEscapes(absl::string_view value) {
  while (!value.empty()) {
    const auto [character, size] = Decode(value);
    if (size == 0 || Misleads(character)) return true;
    value.remove_prefix(size);
  }
  return false;
}

// Within double quotes a single one needs no escape.
std::string Quoted(absl::string_view value, bool by_byte) {
  return absl::StrReplaceAll(
      by_byte ? absl::CEscape(value) : absl::Utf8SafeCEscape(value),
      {{"\\'", "'"}});
}

// Of the escape at the start of `text`: \\n, or \\303.
size_t EscapeBytes(absl::string_view text) {
  return text.size() > 1 && absl::ascii_isdigit(text[1]) ? 4 : 2;
}

absl::Mutex g_mu(absl::kConstInit);
int64_t g_untold ABSL_GUARDED_BY(g_mu) = 0;     // lost lines, not reported yet
bool g_mid_line ABSL_GUARDED_BY(g_mu) = false;  // a line was written in part
std::atomic<int64_t> g_lost{0};

// A terminal that says POLLOUT may have less room than a line needs, and would
// block: it is opened once more, since its own descriptor is shared with other
// programs. -1: it cannot be, for example if it is another user's; then a
// write may block.
int OpenTerminal() {
  if (isatty(STDERR_FILENO) != 1) return -1;
  return open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

// Without waiting. One write per line, so that lines never mix; of at most
// kMaxLogLine bytes, for which a pipe that says POLLOUT has room.
bool TryWrite(std::string line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(g_mu) {
  pollfd out = {STDERR_FILENO, POLLOUT, 0};
  if (poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0) return false;
  if (g_mid_line) line = absl::StrCat("\n", line);
  const int terminal = OpenTerminal();
  const ssize_t written =
      write(terminal >= 0 ? terminal : STDERR_FILENO, line.data(), line.size());
  if (terminal >= 0) close(terminal);
  const bool whole = written == static_cast<ssize_t>(line.size());
  if (written > 0) g_mid_line = !whole;
  return whole;
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

// To kMaxLogLine bytes at most, between characters and outside of escapes;
// closes the quotes of a value that is cut.
void Cut(std::string* line) {
  constexpr absl::string_view kEnd = "\" cut=true\n";
  absl::string_view left = *line;
  size_t room = kMaxLogLine - kEnd.size();
  bool quoted = false;
  while (!left.empty()) {
    const size_t bytes = quoted && left[0] == '\\'
                             ? EscapeBytes(left)
                             : std::max<size_t>(1, Decode(left).second);
    if (bytes > room) break;
    if (left[0] == '"') quoted = !quoted;
    left.remove_prefix(bytes);
    room -= bytes;
  }
  line->resize(line->size() - left.size());
  absl::StrAppend(line, kEnd.substr(quoted ? 0 : 1));
}

std::string Line(LogLevel level, absl::string_view event,
                 absl::string_view pairs) {
  std::string line =
      absl::StrCat("ts=",
                   absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(),
                                    absl::UTCTimeZone()),
                   " level=", LevelName(level), " event=", event,
                   pairs.empty() ? "" : " ", pairs, "\n");
  if (line.size() > kMaxLogLine) Cut(&line);
  return line;
}

}  // namespace

LogFields& LogFields::Add(absl::string_view key, const absl::AlphaNum& value) {
  if (!text_.empty()) text_ += ' ';
  const bool by_byte = NeedsByteEscapes(value.Piece());
  if (by_byte || NeedsQuotes(value.Piece())) {
    absl::StrAppend(&text_, key, "=\"", Quoted(value.Piece(), by_byte), "\"");
  } else {
    absl::StrAppend(&text_, key, "=", value);
  }
  return *this;
}

LogFields& LogFields::AddLeftOut(int64_t lines) {
  return lines > 0 ? Add("left_out", lines) : *this;
}

LogFields& LogFields::Append(absl::string_view pairs) {
  if (!text_.empty() && !pairs.empty()) text_ += ' ';
  absl::StrAppend(&text_, pairs);
  return *this;
}

void Log(LogLevel level, absl::string_view event, const LogFields& fields) {
  const std::string line = Line(level, event, fields.text());
  // One writer at a time, or two could fill the room that poll saw.
  absl::MutexLock lock(&g_mu);
  if (g_untold > 0 &&
      TryWrite(Line(LogLevel::kWarning, "log_lines_lost",
                    LogFields().Add("lines", g_untold).text()))) {
    g_untold = 0;
  }
  if (g_untold == 0 && TryWrite(line)) return;
  ++g_untold;
  ++g_lost;
}

int64_t LogLinesLost() { return g_lost; }

bool LogLimit::Allows(absl::Time now) {
  used_until_ = std::max(used_until_, now - burst_ * interval_);
  if (used_until_ + interval_ > now) return false;
  used_until_ += interval_;
  return true;
}

std::optional<int64_t> CountingLogLimit::Allows(absl::Time now) {
  absl::MutexLock lock(&mu_);
  if (limit_.Allows(now)) return std::exchange(left_out_, 0);
  ++left_out_;
  return std::nullopt;
}

}  // namespace encoderd
