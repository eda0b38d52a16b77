#include "server/api/inspect.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "server/api/options.h"
#include "server/base/catch_all.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/reasons.h"

namespace encoderd {

absl::StatusOr<InspectJob> InspectJob::Make(const ServedModel& model,
                                            const RequestLimits& limits,
                                            const InspectRequest& request) {
  InspectJob job(model, request);
  const absl::Status status = job.CheckRows();
  if (!status.ok()) return status;
  const int64_t answer = job.LeastBytes();
  const int64_t limit = limits.max_answer_bytes;
  if (answer > limit) return AnswerTooLargeError(answer, limit, "");
  return job;
}

absl::Status InspectJob::CheckRows() {
  if (count_ > kMaxInspectedRows) {
    return BadOption("row_count",
                     absl::StrCat("is ", count_, "; at most ",
                                  kMaxInspectedRows, " rows per request"),
                     count_, kMaxInspectedRows);
  }
  const int64_t rows = table().rows;
  if (first_ >= rows || count_ > rows - first_) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat("first_row is ", first_, " and row_count ", count_,
                     "; the position table has ", rows, " rows"),
        {reason::kRowsOutOfRange,
         {{"first_row", absl::StrCat(first_)},
          {"row_count", absl::StrCat(count_)},
          {"limit", absl::StrCat(rows)}},
         first_ >= rows ? "first_row" : "row_count"});
  }
  if (count_ == 0) count_ = std::min(rows - first_, kMaxInspectedRows);
  return absl::OkStatus();
}

int64_t InspectJob::LeastBytes() const {
  int64_t floats = 1;  // a norm
  if (cosine_) floats += count_;
  if (values_) floats += table().cols;
  return count_ * floats * int64_t{sizeof(float)};
}

std::shared_ptr<PipelineCall> InspectJob::Submit(absl::Time deadline,
                                                 const Caller& caller,
                                                 Done done) const {
  return model_->pipeline->SubmitWork(
      caller.id, deadline,
      [job = *this, done = std::move(done)](absl::Status status) {
        absl::StatusOr<InspectAnswer> answer = InspectAnswer();
        if (status.ok()) {
          status = CatchAll([&] {
            *answer = job.Measure();
            return absl::OkStatus();
          });
        }
        if (!status.ok()) answer = status;
        done(std::move(answer));
      });
}

InspectAnswer InspectJob::Measure() const {
  InspectAnswer answer;
  answer.figures = InspectPositionRows(table(), first_, count_);
  if (cosine_) answer.cosine = PositionCosines(table(), first_, count_);
  if (values_) {
    answer.values =
        absl::MakeConstSpan(table().Row(first_), count_ * table().cols);
  }
  return answer;
}

}  // namespace encoderd
