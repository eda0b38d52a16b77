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
  // given: EmbedOptions.fingerprint; empty: any. seen: what the caller of the
  // job has seen of its server, as if it were an answer's; empty: nothing.
  explicit SameModel(std::string given, std::string seen = "")
      : given_(std::move(given)), seen_(std::move(seen)) {}

  // found: an answer's. FAILED_PRECONDITION if those before had another, or if
  // it is not the given one. An answer without one, of a server that does not
  // send it, is not checked.
  absl::Status Check(const std::string& found);

 private:
  const std::string given_;
  std::string seen_;  // of the answers so far; empty: not known yet
};

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_SAME_MODEL_H_
