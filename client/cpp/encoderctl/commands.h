// The commands of encoderctl. Each is one function in its own file;
// commands.cc lists them. To add one: its file, a line here, a line there.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_COMMANDS_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "client/cpp/encoderctl/encoderctl.h"

namespace encoderd::ctl {

struct Command {
  const char* name;
  const char* arguments;  // "[TEXT...]"
  const char* summary;    // one line
  const char* details;    // for --help
  const char* examples;   // lines for a shell
  int (*run)(const Command& command, const std::vector<std::string>& arguments,
             Environment& environment);
};

absl::Span<const Command> Commands();

// Instead of arguments, has a command print its flags and their known values,
// for the shell's completion: Flags::Candidates.
inline constexpr char kListCandidates[] = "--list-candidates";

using Arguments = std::vector<std::string>;
int RunEmbed(const Command&, const Arguments&, Environment&);
int RunEncode(const Command&, const Arguments&, Environment&);
int RunTokenize(const Command&, const Arguments&, Environment&);
int RunSimilarity(const Command&, const Arguments&, Environment&);
int RunModels(const Command&, const Arguments&, Environment&);
int RunInspect(const Command&, const Arguments&, Environment&);
int RunBench(const Command&, const Arguments&, Environment&);
int RunHealth(const Command&, const Arguments&, Environment&);
int RunCompletion(const Command&, const Arguments&, Environment&);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_COMMANDS_H_
