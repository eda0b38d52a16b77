#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>

#include "client/cpp/encoderctl/encoderctl.h"

int main(int argc, char** argv) {
  // A reader that goes away (| head) is an error of the output, not a signal;
  // so is a file that may not grow any further (ulimit -f).
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::ios::sync_with_stdio(false);
  const char* target = std::getenv("ENCODERD_TARGET");
  encoderd::ctl::Environment environment{std::cin,
                                         std::cout,
                                         std::cerr,
                                         isatty(STDIN_FILENO) == 1,
                                         isatty(STDERR_FILENO) == 1,
                                         STDIN_FILENO,
                                         target == nullptr ? "" : target};
  return encoderd::ctl::RunEncoderctl({argv + 1, argv + argc}, environment);
}
