// The Sessions that compute a model's batches.
#ifndef ENCODERD_SERVER_SESSIONS_H_
#define ENCODERD_SERVER_SESSIONS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/model.h"
#include "server/config.h"

namespace encoderd {

struct ServingSessions {
  std::vector<std::unique_ptr<Session>> sessions;  // one per compute thread
  std::vector<std::unique_ptr<Session>> pause_sessions;  // see Pipeline

  // Of all of them (Session::scratch_bytes).
  int64_t scratch_bytes() const;
};

// Warmed up: a test pass by each Session, or by one if passes run on their
// caller's thread (ModelInfo::pauses). INVALID_ARGUMENT: fewer threads than the
// device needs. DATA_LOSS: the test pass computes values that are not finite.
absl::StatusOr<ServingSessions> NewSessions(const ServerConfig& config,
                                            const Model& model);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_SESSIONS_H_
