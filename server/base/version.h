// The version and the build of this program.
#ifndef ENCODERD_SERVER_BASE_VERSION_H_
#define ENCODERD_SERVER_BASE_VERSION_H_

#include <string>

namespace encoderd {

// The project's version, from CMake.
#ifdef ENCODERD_VERSION
inline constexpr char kVersion[] = ENCODERD_VERSION;
#else
inline constexpr char kVersion[] = "unknown";
#endif

// What only main.cc is compiled with.
struct BuildInfo {
  std::string revision = "unknown";  // the commit of the sources
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_BASE_VERSION_H_
