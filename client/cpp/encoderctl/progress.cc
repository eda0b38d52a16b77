#include "client/cpp/encoderctl/progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cpp/encoderctl/number.h"
#include "client/cpp/steady_time.h"

namespace encoderd::ctl {
namespace {

constexpr absl::Duration kRedraw = absl::Milliseconds(200);
constexpr int kBarWidth = 20;

}  // namespace

std::string ProgressLine(int64_t texts, double share, absl::Duration spent,
                         double before) {
  const double seconds = std::max(absl::ToDoubleSeconds(spent), 1e-3);
  std::string line = absl::StrCat(
      Texts(texts), "  ", static_cast<int64_t>(texts / seconds), " texts/s");
  if (share > before) {
    const absl::Duration left =
        absl::Seconds(seconds * (1 - share) / (share - before));
    const int filled = static_cast<int>(share * kBarWidth);
    absl::StrAppend(&line, "  [", std::string(filled, '#'),
                    std::string(kBarWidth - filled, '-'), "]  ",
                    static_cast<int>(share * 100), " %  ",
                    absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))),
                    " left");
  }
  return line;
}

Progress::Progress(std::ostream* terminal, absl::Duration patience,
                   double before)
    : terminal_(terminal),
      patience_(patience),
      before_(before),
      start_(client::SteadyNow()) {}

void Progress::Update(int64_t texts, double share) {
  const absl::Time now = client::SteadyNow();
  if (terminal_ == nullptr || now - drawn_ < kRedraw ||
      now - start_ < patience_) {
    return;
  }
  drawn_ = now;
  std::string line = ProgressLine(texts, share, now - start_, before_);
  const size_t width = line.size();
  line.resize(std::max(width, width_), ' ');
  width_ = width;
  *terminal_ << '\r' << line << std::flush;
}

void Progress::End(int64_t texts) {
  Clear();
  const absl::Duration spent = client::SteadyNow() - start_;
  if (terminal_ == nullptr || spent < patience_) return;
  const double seconds = std::max(absl::ToDoubleSeconds(spent), 1e-3);
  *terminal_ << absl::StrFormat(
      "%s in %.1f s, %d texts/s\n", Texts(texts), seconds,
      static_cast<int64_t>(static_cast<double>(texts) / seconds));
}

void Progress::Clear() {
  if (terminal_ == nullptr || width_ == 0) return;
  *terminal_ << '\r' << std::string(width_, ' ') << '\r' << std::flush;
  width_ = 0;
}

}  // namespace encoderd::ctl
