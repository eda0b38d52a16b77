#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <ostream>

#include "client/cpp/encoderctl/encoderctl.h"
#include "client/cpp/encoderctl/stoppable_write.h"

namespace {

// Those of the environment whose names begin with "ENCODERD_".
encoderd::ctl::Variables ReadVariables() {
  encoderd::ctl::Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (text.rfind("ENCODERD_", 0) != 0 || equals == std::string::npos) {
      continue;
    }
    variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

// A descriptor that is closed (<&-) would become one of gRPC's, which is then
// read forever or written to. The wrong way round each use of it fails.
void OccupyClosedDescriptors() {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(standard, F_GETFD) != -1 || errno != EBADF) continue;
    const int way = standard == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", way) != standard) _exit(1);  // takes the lowest
  }
}

}  // namespace

// gRPC opens descriptors as its library is loaded, which precedes main.
__attribute__((section(".preinit_array"),
               used)) void (*const kFirst)() = OccupyClosedDescriptors;

int main(int argc, char** argv) {
  // A reader that goes away (| head) is an error of the output, not a signal;
  // so is a file that may not grow any further (ulimit -f).
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  // gRPC's own log lines would precede the error that explains them.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  std::ios::sync_with_stdio(false);
  encoderd::ctl::StoppableBuffer errors(
      encoderd::ctl::ReopenTerminal(STDERR_FILENO));
  std::ostream err(&errors);
  err.tie(&std::cout);  // as of std::cerr
  encoderd::ctl::Environment environment{
      std::cin,
      std::cout,
      err,
      isatty(STDIN_FILENO) == 1,
      isatty(STDOUT_FILENO) == 1,
      isatty(STDERR_FILENO) == 1,
      STDIN_FILENO,
      encoderd::ctl::ReopenTerminal(STDOUT_FILENO),
      ReadVariables()};
  return encoderd::ctl::RunEncoderctl({argv + 1, argv + argc}, environment);
}
