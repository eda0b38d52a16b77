// Whether all answers of one job come from the same model: a server that was
// restarted, or another replica, may serve another one. Internal to the
// library. Not thread-safe: one job, one thread.
#ifndef ENCODERD_CLIENT_CPP_SAME_MODEL_H_
#define ENCODERD_CLIENT_CPP_SAME_MODEL_H_

#include <string>
#include <utility>

#include "absl/status/status.h"

namespace encoderd::client {

class SameModel {
 public:
  // fingerprint: EmbedOptions.fingerprint; empty: that of the first answer.
  explicit SameModel(std::string fingerprint)
      : fingerprint_(std::move(fingerprint)) {}

  // found: an answer's. FAILED_PRECONDITION if those before had another. An
  // answer without one, of a server that does not send it, is not checked.
  absl::Status Check(const std::string& found);

 private:
  std::string fingerprint_;  // empty: not known yet
};

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_SAME_MODEL_H_
