// The command line: Abseil flags into a ServerConfig. The only file that reads
// a flag.
#ifndef ENCODERD_SERVER_FLAGS_H_
#define ENCODERD_SERVER_FLAGS_H_

#include "absl/status/statusor.h"
#include "server/base/log.h"
#include "server/config.h"

namespace encoderd {

// Parses argv (and --flagfile), answers --help and --version itself by exiting,
// and returns the checked settings. INVALID_ARGUMENT names flag, value, limit,
// and the line of a flag file.
// Call once, from main.
absl::StatusOr<ServerConfig> ConfigFromFlags(int argc, char** argv);

// Every setting with its value, sorted by name. After ConfigFromFlags.
LogFields FlagsInUse();

}  // namespace encoderd

#endif  // ENCODERD_SERVER_FLAGS_H_
