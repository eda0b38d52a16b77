// A program of the build as a child process: its log is read line by line, it
// can be signalled and waited for. Killed at the end of the test if it still
// runs.
#ifndef ENCODERD_TESTS_SUPPORT_PROCESS_H_
#define ENCODERD_TESTS_SUPPORT_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/support/patience.h"

namespace encoderd {

class Process {
 public:
  // arguments[0] is the program's path. Standard error is the log.
  explicit Process(const std::vector<std::string>& arguments);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Reads the log until a line holds `text`; that line, or "" when the log
  // ended or the time is up.
  std::string WaitForLine(const std::string& text,
                          absl::Duration patience = kPatience);
  void Signal(int number);
  // The exit code, -signal when one killed it, or -1000 when the time is up.
  int Wait(absl::Duration patience = kPatience);

  // All of the log so far.
  const std::string& log() const { return log_; }
  pid_t pid() const { return pid_; }

 private:
  bool ReadMore(absl::Time until);

  pid_t pid_ = -1;
  int log_fd_ = -1;
  bool ended_ = false;
  int exit_code_ = 0;
  std::string log_;
  size_t searched_ = 0;  // lines before it were returned or passed over
};

// The value of `key` in a line of the server's log; "" when it has none.
std::string LogValue(const std::string& line, const std::string& key);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_PROCESS_H_
