#include "client/cpp/encoderctl/encoderctl.h"

#include "client/cpp/encoderctl/commands.h"

namespace encoderd::ctl {
namespace {

constexpr char kHead[] =
    "encoderctl: the command line of encoderd\n"
    "\n"
    "usage: encoderctl COMMAND [ARGUMENTS] [--FLAG=VALUE...]\n"
    "\n";
constexpr char kFoot[] =
    "\n"
    "encoderctl COMMAND --help   shows the flags of a command\n"
    "encoderctl --version        shows the version\n"
    "\n"
    "exit codes: 0 done; 1 the server, the connection or the output failed "
    "(health: not serving); 2 wrong command line\n";

void PrintHelp(std::ostream& out) {
  out << kHead;
  for (const Command& command : Commands()) {
    const std::string name = command.name;
    out << "  " << name << std::string(12 - name.size(), ' ') << command.summary
        << "\n";
  }
  out << kFoot;
}

}  // namespace

int RunEncoderctl(const std::vector<std::string>& arguments,
                  Environment& environment) {
  if (arguments.empty()) {
    PrintHelp(environment.err);
    return kExitUsage;
  }
  const std::string& name = arguments[0];
  if (name == "--help" || name == "-h" || name == "help") {
    PrintHelp(environment.out);
    return kExitOk;
  }
  if (name == "--version") {
    environment.out << "encoderctl " << ENCODERD_VERSION << "\n";
    return kExitOk;
  }
  for (const Command& command : Commands()) {
    if (name == command.name) {
      return command.run(command, {arguments.begin() + 1, arguments.end()},
                         environment);
    }
  }
  environment.err << "encoderctl: unknown command \"" << name
                  << "\"; see encoderctl --help\n";
  return kExitUsage;
}

}  // namespace encoderd::ctl
