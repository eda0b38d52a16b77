#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>

#include "client/cpp/encoderctl/encoderctl.h"

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

}  // namespace

int main(int argc, char** argv) {
  // A reader that goes away (| head) is an error of the output, not a signal;
  // so is a file that may not grow any further (ulimit -f).
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  // gRPC's own log lines would precede the error that explains them.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  std::ios::sync_with_stdio(false);
  encoderd::ctl::Environment environment{std::cin,
                                         std::cout,
                                         std::cerr,
                                         isatty(STDIN_FILENO) == 1,
                                         isatty(STDERR_FILENO) == 1,
                                         STDIN_FILENO,
                                         ReadVariables()};
  return encoderd::ctl::RunEncoderctl({argv + 1, argv + argc}, environment);
}
