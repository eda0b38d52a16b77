#include "server/api/tokenize.h"

#include <limits>
#include <utility>

namespace encoderd {
namespace {

// A token in the answer: its id and segment, the tag and length of its text.
constexpr int64_t kLeastTokenBytes = 4;

}  // namespace

absl::StatusOr<TokenizeJob> TokenizeJob::Make(const ServedModel& model,
                                              const RequestLimits& limits,
                                              TokenizeRequest request) {
  absl::Status status =
      CheckInputCount(static_cast<int64_t>(request.inputs.size()), limits);
  if (!status.ok()) return status;
  TokenizeJob job(model, "");
  IdLimits any_length = job.info().limits;
  any_length.max_len = std::numeric_limits<int32_t>::max();
  status = CheckInputs({"", any_length, false}, &request.inputs);
  if (!status.ok()) return status;
  job.request_.inputs = std::move(request.inputs);
  job.request_.ids_only.emplace().offsets = true;
  job.request_.answer = {kLeastTokenBytes, limits.max_answer_bytes};
  return job;
}

}  // namespace encoderd
