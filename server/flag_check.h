// A command line checked before Abseil parses it: Abseil ends the process at
// the first fault, without a line in the log and without the remedy. Call it
// from main, before any thread.
#ifndef ENCODERD_SERVER_FLAG_CHECK_H_
#define ENCODERD_SERVER_FLAG_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace encoderd {

// INVALID_ARGUMENT: the first fault of the arguments after the program's name,
// and of the flag files that they name. An unknown flag, with the nearest one;
// a value of the wrong type; an argument that is no flag; a line of a flag file
// with quotes, a comment after its value, or a space for "="; a file of flags
// with a byte order mark; an empty value where one is needed. UNAVAILABLE or
// RESOURCE_EXHAUSTED: a flag file that the next start may be able to read
// (FileError).
absl::Status CheckArguments(const std::vector<std::string>& arguments);

// Whether a flag defined in `file` is the server's, not one of Abseil's.
bool IsServerFlagFile(absl::string_view file);

// Whether the arguments ask for help: --help, -h and their kind.
bool AsksForHelp(const std::vector<std::string>& arguments);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_FLAG_CHECK_H_
