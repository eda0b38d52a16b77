// encoderctl completion
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cpp/encoderctl/invocation.h"

namespace encoderd::ctl {
namespace {

// What the shell calls at a tab. bash splits a word at "=", so the value of
// --format=x is a word, as that of --format x is. Where nothing is known, bash
// completes file names (-o default).
constexpr char kFunction[] = R"(
_encoderctl() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
  local command=${COMP_WORDS[1]} values
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "$_encoderctl_commands" -- "$cur"))
    return
  fi
  if [[ $command == help ]]; then
    COMPREPLY=($(compgen -W "$_encoderctl_commands" -- "$cur"))
    return
  fi
  if [[ $command == completion && $cur != -* ]]; then
    COMPREPLY=($(compgen -W bash -- "$cur"))
    return
  fi
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  # A flag takes dashes for underscores.
  if [[ $prev == --* ]]; then
    prev=${prev#--}
    prev=--${prev//-/_}
  fi
  if [[ $cur == --* ]]; then
    cur=${cur#--}
    cur=--${cur//-/_}
  fi
  values=${_encoderctl_values["$command $prev"]}
  if [[ -n $values ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$cur"))
  elif [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "${_encoderctl_flags[$command]}" -- "$cur"))
  fi
}
complete -o default -F _encoderctl encoderctl
)";

// The flags of `command` and their values, as bash has them.
std::string Candidates(const Command& command) {
  std::istringstream in;
  std::ostringstream out, err;
  Environment captured{in, out, err};
  command.run(command, {kListCandidates}, captured);
  std::vector<std::string> flags = {"--help"};
  std::string script;
  for (const absl::string_view line :
       absl::StrSplit(out.str(), '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    flags.emplace_back(parts.first);
    if (parts.second.empty()) continue;
    absl::StrAppend(&script, "_encoderctl_values[\"", command.name, " ",
                    parts.first, "\"]='", parts.second, "'\n");
  }
  return absl::StrCat("_encoderctl_flags[", command.name, "]='",
                      absl::StrJoin(flags, " "), "'\n", script);
}

}  // namespace

int RunCompletion(const Command& command, const Arguments& arguments,
                  Environment& environment) {
  Invocation invocation(command, environment, Invocation::NoServer());
  if (arguments == Arguments{kListCandidates}) return kExitOk;  // none
  if (const auto over = invocation.Parse(arguments)) return *over;
  if (invocation.positional != Arguments{"bash"}) {
    return invocation.Usage("takes the name of a shell: bash");
  }
  std::vector<std::string> names = {"help"};
  // -g: bash-completion sources this inside a function.
  std::string script = "declare -gA _encoderctl_flags _encoderctl_values\n";
  for (const Command& other : Commands()) {
    names.push_back(other.name);
    absl::StrAppend(&script, Candidates(other));
  }
  environment.out << script << "_encoderctl_commands='"
                  << absl::StrJoin(names, " ") << "'" << kFunction;
  return kExitOk;
}

}  // namespace encoderd::ctl
