// encoderctl as a function: the whole program but for main, so that tests run
// it in their own process. Not thread-safe.
//
// Exit codes: 0 all was done (health: serving); 1 the server or the connection
// failed, the server refused an input or, under --on_error=skip, every input, a
// file could not be read or written, or (health) not serving; 2 the command
// line is wrong; 128 + N a signal ended it, as the shell has it: 130 Ctrl-C,
// 141 nobody reads the output any more.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_ENCODERCTL_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_ENCODERCTL_H_

#include <istream>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace encoderd::ctl {

enum ExitCode {
  kExitOk = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitSignal = 128,  // and the signal's number
};

using Variables = std::map<std::string, std::string>;

// What the program is connected to.
struct Environment {
  std::istream& in;
  std::ostream& out;  // results
  std::ostream& err;  // errors, progress
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  int in_descriptor = -1;    // to wait for `in` on; -1: it never blocks
  int out_descriptor = -1;   // of `out`; -1: it has none
  Variables variables = {};  // ENCODERD_...: defaults of flags
};

// `arguments` without the program's name.
int RunEncoderctl(const std::vector<std::string>& arguments,
                  Environment& environment);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_ENCODERCTL_H_
