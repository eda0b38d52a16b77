// Encode: texts or ids in, the states of every token at one layer out.
#ifndef ENCODERD_SERVER_API_ENCODE_H_
#define ENCODERD_SERVER_API_ENCODE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/api/job.h"
#include "server/api/options.h"

namespace encoderd {

// proto/encoderd/v1/encoder.proto has the meaning and default of each.
struct EncodeRequest {
  std::string model;
  std::vector<Input> inputs;
  std::optional<uint32_t> layer;
  TruncateChoice truncate = TruncateChoice::kUnset;
  std::string request_id;
  SpanChoice span = SpanChoice::kUnset;
  bool before_norm = false;
  OnErrorChoice on_error = OnErrorChoice::kUnset;
};

// The answer is the pipeline's: InputResult::values is [rows, columns()].
class EncodeJob : public Job {
 public:
  static absl::StatusOr<EncodeJob> Make(const ServedModel& model,
                                        const RequestLimits& limits,
                                        EncodeRequest request);

  // Of every input's states, even without rows.
  int32_t columns() const { return columns_; }

 private:
  using Job::Job;
  absl::Status Check(const RequestLimits& limits, EncodeRequest* request);
  absl::Status CheckLayer(const EncodeRequest& request);

  int32_t columns_ = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_API_ENCODE_H_
