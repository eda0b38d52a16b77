// The process: flags, signals, exit code. main.cc runs it with the real engine,
// tests with a fake one.
#ifndef ENCODERD_SERVER_RUN_H_
#define ENCODERD_SERVER_RUN_H_

#include <string>

#include "server/server.h"

namespace encoderd {

inline constexpr int kExitOk = 0;           // after TERM or INT
inline constexpr int kExitStartFailed = 1;  // flags, a file or a model rejected
inline constexpr int kExitDeviceLost = 3;   // a supervisor should restart it
inline constexpr int kExitHurried = 4;      // a second TERM or INT
// The start failed, and the next one may not: the address is in use, or memory,
// threads, descriptors or the device could not be had.
inline constexpr int kExitTryAgain = 5;

// Runs until a signal, a failed start or a lost device. Call once, from main,
// before any thread exists. Does not return after a signal while the model is
// loading: the process ends at once. revision: the commit of the sources, for
// the log and the metrics.
int RunServer(int argc, char** argv, const ModelLoader& loader,
              const std::string& revision = "unknown");

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RUN_H_
