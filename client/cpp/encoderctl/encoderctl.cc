#include "client/cpp/encoderctl/encoderctl.h"

#include <cerrno>
#include <csignal>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cpp/encoderctl/access_flags.h"
#include "client/cpp/encoderctl/commands.h"
#include "client/cpp/encoderctl/near_miss.h"
#include "client/cpp/encoderctl/output_file.h"
#include "client/cpp/encoderctl/wrap.h"

namespace encoderd::ctl {
namespace {

constexpr char kHead[] =
    "encoderctl: the command line of encoderd\n"
    "\n"
    "usage: encoderctl COMMAND [ARGUMENTS] [--FLAG=VALUE...]\n"
    "\n";
constexpr char kFoot[] = R"(
encoderctl help COMMAND     shows examples and the flags of a command
encoderctl help connection  shows the flags for TLS and tokens
encoderctl --version        shows the version

examples:
  encoderctl embed "Hello, world" --format=jsonl
  encoderctl embed --input=texts.txt --output=vectors.npy
  encoderctl similarity "A man is eating food." "Someone has a meal."

The server is localhost:8400 unless --target=HOST:PORT or ENCODERD_TARGET
names another.

exit codes: 0 done; 1 the server refused or failed, the connection broke, a
file could not be read or written, there were no texts, or --on_error=skip
skipped all (health: not serving; bench: a call failed, or none was answered);
2 wrong command line, or the start of the input file shows that it cannot be
read; 130 Ctrl-C, 143 TERM (bench: prints its figures and ends with 0 or 1);
141 the reader of the output closed it
)";

void PrintHelp(std::ostream& out) {
  out << kHead;
  for (const Command& command : Commands()) {
    const std::string name = command.name;
    out << "  " << name << std::string(12 - name.size(), ' ') << command.summary
        << "\n";
  }
  out << kFoot;
}

void PrintConnectionHelp(std::ostream& out) {
  AccessFlags access;
  Flags flags;
  access.AddTo(&flags);
  out << "flags of every command that calls a server, as --FLAG=VALUE or "
         "--FLAG VALUE:\n"
      << flags.Help();
}

const Command* Find(const std::string& name) {
  for (const Command& command : Commands()) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

int RefuseCommand(const std::string& name, std::ostream& err) {
  err << "encoderctl: ";
  if (absl::StartsWith(name, "-")) {
    err << "unknown flag \"" << Printable(name)
        << "\"; flags follow the command: encoderctl COMMAND --FLAG=VALUE";
  } else {
    std::vector<std::string> names;
    for (const Command& command : Commands()) names.push_back(command.name);
    const std::string near = DidYouMean(name, names, "");
    err << "unknown command \"" << Printable(name) << "\""
        << (near.empty()
                ? absl::StrCat("; available: ", absl::StrJoin(names, ", "))
                : near);
  }
  err << "\nsee encoderctl --help\n";
  return kExitUsage;
}

int Run(const std::vector<std::string>& arguments, Environment& environment) {
  if (arguments.empty()) {
    PrintHelp(environment.err);
    return kExitUsage;
  }
  const std::string& name = arguments[0];
  if (name == "--version" || name == "version") {
    environment.out << "encoderctl " << ENCODERD_VERSION << "\n";
    return kExitOk;
  }
  const bool help = name == "--help" || name == "-h" || name == "help";
  if (help && arguments.size() == 1) {
    PrintHelp(environment.out);
    return kExitOk;
  }
  if (help && arguments.size() > 2) {
    environment.err << "encoderctl help: takes one command\n"
                       "see encoderctl --help\n";
    return kExitUsage;
  }
  const std::string& wanted = help ? arguments[1] : name;
  if (wanted == "help" || wanted == "--help" || wanted == "-h") {
    PrintHelp(environment.out);
    return kExitOk;
  }
  if (help && wanted == "connection") {
    PrintConnectionHelp(environment.out);
    return kExitOk;
  }
  const Command* const command = Find(wanted);
  if (command == nullptr) return RefuseCommand(wanted, environment.err);
  if (help) return command->run(*command, {"--help"}, environment);
  return command->run(*command, {arguments.begin() + 1, arguments.end()},
                      environment);
}

}  // namespace

int RunEncoderctl(const std::vector<std::string>& arguments,
                  Environment& environment) {
  const int code = Run(arguments, environment);
  // Commands that keep no account of what they print, such as help.
  errno = 0;
  environment.out.flush();
  if (environment.out || code != kExitOk) return code;
  const absl::Status lost = CannotWrite("standard output", errno);
  if (IsBrokenPipe(lost)) return kExitSignal + SIGPIPE;
  environment.err << "encoderctl: " << lost.message() << "\n";
  return kExitFailed;
}

}  // namespace encoderd::ctl
