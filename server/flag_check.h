// A command line checked before Abseil parses it: Abseil ends the process at
// the first fault, without a line in the log and without the remedy. Call it
// from main, before any thread.
#ifndef ENCODERD_SERVER_FLAG_CHECK_H_
#define ENCODERD_SERVER_FLAG_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace encoderd {

// The arguments after the program's name, with the lines of flag files and the
// values of variables in the places of --flagfile, --fromenv and --tryfromenv:
// each file is read once, because a pipe can be. INVALID_ARGUMENT: the first
// fault of them and of the flag files. An unknown flag, with the nearest one;
// a value of the wrong type; an argument that is no flag; a line of a flag file
// with quotes, a comment after its value, or a space for "="; a file of flags
// with a byte order mark or of more than 1 MiB; an empty value where one is
// needed. UNAVAILABLE or RESOURCE_EXHAUSTED: a flag file that the next start
// may be able to read (FileError).
absl::StatusOr<std::vector<std::string>> CheckArguments(
    const std::vector<std::string>& arguments);

// Whether a flag defined in `file` is the server's, not one of Abseil's.
bool IsServerFlagFile(absl::string_view file);

// The arguments that ask for help: --help, -h and their kind. Empty: none.
std::vector<std::string> HelpFlags(const std::vector<std::string>& arguments);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_FLAG_CHECK_H_
