// The name and version of this program.
#ifndef ENCODERD_SERVER_BASE_VERSION_H_
#define ENCODERD_SERVER_BASE_VERSION_H_

namespace encoderd {

// The project's version, from CMake.
#ifdef ENCODERD_VERSION
inline constexpr char kVersion[] = ENCODERD_VERSION;
#else
inline constexpr char kVersion[] = "unknown";
#endif

}  // namespace encoderd

#endif  // ENCODERD_SERVER_BASE_VERSION_H_
