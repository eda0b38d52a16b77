// Warnings of settings that are valid, but do less than they say, reject what
// the model could take, give tokens away or take more memory than there is; one
// line of the log each.
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

// Where `limit_bytes`, that of the control groups, is below what the process
// takes under ordinary load: `resident_bytes`, its memory now that the models
// are loaded, and by the rules of "Size" in deploy/README.md what their compute
// threads and a queue of Encode add.
void WarnOfMemory(
    const ServerConfig& config, int64_t limit_bytes, int64_t resident_bytes,
    const std::vector<std::pair<std::string, const ModelInfo*>>& models);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_START_WARNINGS_H_
