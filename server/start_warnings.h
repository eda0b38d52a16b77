// Warnings about settings that are valid, but do less than they say, reject
// what the model could take, give tokens away or take more memory than there
// is; one line of the log each, after the load unless stated.
#ifndef ENCODERD_SERVER_START_WARNINGS_H_
#define ENCODERD_SERVER_START_WARNINGS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/model.h"
#include "server/config.h"
#include "server/security/token_table.h"

namespace encoderd {

// `tokens`: null without --bearer_token_file. `models`: all that are served,
// with their names; not empty.
void WarnOfSettings(
    const ServerConfig& config, const TokenTable* tokens,
    const std::vector<std::pair<std::string, const ModelInfo*>>& models);

struct LoadSizes {
  int64_t limit_bytes = 0;     // of the control groups
  int64_t resident_bytes = 0;  // of the process, before the load
  int64_t weights_bytes = 0;   // of all models, as in their files (WeightBytes)
};

// Before the load, during which the kernel may end the process: if the limit is
// below resident memory plus the weights on a CPU, estimated from their files.
void WarnOfLoading(const ServerConfig& config, const LoadSizes& sizes);

struct MemorySizes {
  int64_t limit_bytes = 0;     // of the control groups
  int64_t resident_bytes = 0;  // of the process, now that the models are loaded
  int64_t scratch_bytes = 0;   // of all Sessions (Session::scratch_bytes)
};

// Where the limit is below what the process takes under ordinary load: what is
// resident, the scratch memory and, of each model, a queue full of Encode.
void WarnOfMemory(
    const ServerConfig& config, const MemorySizes& memory,
    const std::vector<std::pair<std::string, const ModelInfo*>>& models);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_START_WARNINGS_H_
