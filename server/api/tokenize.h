// Tokenize: texts in, ids and the offsets of their tokens out. Computes
// nothing, so no input is too long.
#ifndef ENCODERD_SERVER_API_TOKENIZE_H_
#define ENCODERD_SERVER_API_TOKENIZE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/api/job.h"

namespace encoderd {

struct TokenizeRequest {
  std::string model;
  std::vector<Input> inputs;
};

// The answer is the pipeline's encodings.
class TokenizeJob : public Job {
 public:
  static absl::StatusOr<TokenizeJob> Make(const ServedModel& model,
                                          const RequestLimits& limits,
                                          TokenizeRequest request);

 private:
  using Job::Job;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_API_TOKENIZE_H_
