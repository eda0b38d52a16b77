// One line on a terminal: how many texts, how fast, how long it will take.
// Silent where no terminal looks on. Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_PROGRESS_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_PROGRESS_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/time/time.h"

namespace encoderd::ctl {

// Of --progress; kAuto: where a terminal looks on.
enum class ShowProgress { kAuto, kAlways, kNever };

// "1200 texts  600 texts/s  [#####---------------]  25 %  6s left". `share`
// done, 0 to 1; negative: not known, and neither share nor rest is shown.
// `before`: the share that an earlier run did; `texts` are of this one.
std::string ProgressLine(int64_t texts, double share, absl::Duration spent,
                         double before = 0);

class Progress {
 public:
  // Null: silent. Nothing is drawn before `patience` is over, for work that
  // ends soon.
  explicit Progress(std::ostream* terminal,
                    absl::Duration patience = absl::ZeroDuration(),
                    double before = 0);
  ~Progress() { Clear(); }

  // Redraws the line, at most five times per second.
  void Update(int64_t texts, double share);
  // Takes the line off the terminal.
  void Clear();
  // Says instead how it went: "1200 texts in 2.0 s, 600 texts/s". Silent where
  // the work took less than patience.
  void End(int64_t texts);

 private:
  std::ostream* const terminal_;
  const absl::Duration patience_;
  const double before_;
  const absl::Time start_;
  absl::Time drawn_ = absl::InfinitePast();
  size_t width_ = 0;  // of the line on the terminal
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_PROGRESS_H_
