// The process: flags, signals, exit code (exit_codes.h). main.cc runs it with
// the real engine, tests with a fake one.
#ifndef ENCODERD_SERVER_RUN_H_
#define ENCODERD_SERVER_RUN_H_

#include "server/base/version.h"
#include "server/server.h"

namespace encoderd {

// Runs until a signal, a failed start or a lost device. Call once, from main,
// before any thread exists. Does not return after a signal while the model is
// loading: the process ends at once. build: for the log and the metrics.
int RunServer(int argc, char** argv, const ModelLoader& loader,
              const BuildInfo& build = {});

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RUN_H_
