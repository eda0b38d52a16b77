// What a long run has done, beside its output, so that the next run of the same
// work goes on from there. Not thread-safe.
//
//   line 1    the work: input, its size and time, model, options
//   line 2..  "ROWS BYTES": so many rows were written, for so many bytes of the
//             input; appended after the rows themselves were handed over
//
// Each line ends in a space and its seal, 16 digits that are a function of what
// stands before (FNV-1a), so that damage is told from other work.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_JOURNAL_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_JOURNAL_H_

#include <cstdint>
#include <fstream>
#include <string>

#include "absl/status/status.h"

namespace encoderd::ctl {

struct Progressed {
  int64_t rows = 0;   // of the output
  int64_t bytes = 0;  // of the input
};

// Where the journal of `output` lies.
std::string JournalOf(const std::string& output);

// What stands in a journal.
struct JournalFound {
  std::string work;  // empty: there is none, or its first line is damaged
  Progressed done;   // its last entry
  int64_t damaged_line = 0;  // from this line on, the first being 1; 0: none
};

// Reads the journal at `path`; finds nothing where there is none. A last line
// without its end is no damage: it was being written when the run broke off.
JournalFound ReadJournal(const std::string& path);

class Journal {
 public:
  // Begins the journal anew with one entry. INVALID_ARGUMENT if it cannot be
  // written.
  absl::Status Begin(const std::string& path, const std::string& work,
                     const Progressed& done);
  // DATA_LOSS if it cannot be written. Does nothing before Begin.
  absl::Status Add(const Progressed& done);
  // The work is done: takes the journal away.
  void Remove();

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_JOURNAL_H_
