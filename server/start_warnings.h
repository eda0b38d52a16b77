// Warnings of settings that are valid, but do less than they say, reject what
// the model could take or give tokens away; one line of the log each.
#ifndef ENCODERD_SERVER_START_WARNINGS_H_
#define ENCODERD_SERVER_START_WARNINGS_H_

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

}  // namespace encoderd

#endif  // ENCODERD_SERVER_START_WARNINGS_H_
