// InspectPositions: a range of the position table, measured on a pipeline
// thread, because a cosine matrix would block an RPC thread for too long.
#ifndef ENCODERD_SERVER_API_INSPECT_H_
#define ENCODERD_SERVER_API_INSPECT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/checkpoint/position_inspection.h"
#include "server/api/job.h"

namespace encoderd {

inline constexpr int64_t kMaxInspectedRows = 1024;  // of one call

struct InspectRequest {
  std::string model;
  uint32_t first_row = 0;
  uint32_t row_count = 0;  // 0: to the end, at most kMaxInspectedRows
  bool cosine = false;
  bool values = false;
};

struct InspectAnswer {
  PositionInspection figures;
  std::vector<float> cosine;       // [n,n]; only if requested
  absl::Span<const float> values;  // [n,H] of the model; only if requested
};

// Checked like a Job, but without inputs for the pipeline: its work runs on the
// side thread.
class InspectJob {
 public:
  using Done = std::function<void(absl::StatusOr<InspectAnswer>)>;

  static constexpr absl::string_view kField = "";  // it has no inputs

  // INVALID_OPTION for more than kMaxInspectedRows; ROWS_OUT_OF_RANGE;
  // REQUEST_TOO_LARGE if the answer cannot fit.
  static absl::StatusOr<InspectJob> Make(const ServedModel& model,
                                         const RequestLimits& limits,
                                         const InspectRequest& request);

  // Measures the rows on the pipeline's side thread and calls `done` there,
  // once; if rejected, Submit calls it. Errors: those of Pipeline::SubmitWork;
  // INTERNAL if something throws.
  std::shared_ptr<PipelineCall> Submit(absl::Time deadline,
                                       const Caller& caller, Done done) const;

  const ServedModel& model() const { return *model_; }
  const HostMatrix& table() const { return model_->model->position_rows(); }
  int64_t first() const { return first_; }
  int64_t count() const { return count_; }

 private:
  InspectJob(const ServedModel& model, const InspectRequest& request)
      : model_(&model),
        cosine_(request.cosine),
        values_(request.values),
        first_(request.first_row),
        count_(request.row_count) {}
  absl::Status CheckRows();
  int64_t LeastBytes() const;  // lower bound for the answer
  InspectAnswer Measure() const;

  const ServedModel* model_;
  bool cosine_;
  bool values_;
  int64_t first_;
  int64_t count_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_API_INSPECT_H_
