#include "server/api/encode.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "server/pipeline/reasons.h"

namespace encoderd {

absl::StatusOr<EncodeJob> EncodeJob::Make(const ServedModel& model,
                                          const RequestLimits& limits,
                                          EncodeRequest request) {
  EncodeJob job(model, request.request_id);
  const absl::Status status = job.Check(limits, &request);
  if (!status.ok()) return status;
  return job;
}

absl::Status EncodeJob::CheckLayer(const EncodeRequest& request) {
  const int64_t layers = info().config.num_hidden_layers;
  if (request.layer.has_value() && *request.layer > layers) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     absl::StrCat("layer is ", *request.layer,
                                  "; this model has layers 0 to ", layers),
                     {reason::kLayerOutOfRange,
                      {{"layer", absl::StrCat(*request.layer)},
                       {"limit", absl::StrCat(layers)}},
                      "layer"});
  }
  request_.output.kind = SequenceOutput::Kind::kStates;
  request_.output.layer = static_cast<int32_t>(request.layer.value_or(layers));
  return absl::OkStatus();
}

absl::Status EncodeJob::Check(const RequestLimits& limits,
                              EncodeRequest* request) {
  absl::Status status =
      CheckInputCount(static_cast<int64_t>(request->inputs.size()), limits);
  if (status.ok()) status = CheckRequestId(request->request_id);
  if (status.ok()) status = CheckLayer(*request);
  if (!status.ok()) return status;

  const auto truncate = ToTruncate("truncate", request->truncate);
  if (!truncate.ok()) return truncate.status();
  request_.truncate = *truncate;
  const auto span = ToWithoutSpecialTokens("span", request->span);
  if (!span.ok()) return span.status();
  request_.without_special_tokens = *span;
  int32_t& layer = request_.output.layer;
  if (request->before_norm) {
    if (layer != 0) {
      return BadOption(
          "before_norm",
          absl::StrCat("is set with layer ", layer,
                       request->layer.has_value() ? "" : " (unset: the last)",
                       "; only layer 0 has a state before its norm"),
          layer, 0);
    }
    layer = kTableSum;
  }
  const auto per_input = ToErrorsPerInput("on_error", request->on_error);
  if (!per_input.ok()) return per_input.status();
  request_.errors_per_input = *per_input;
  columns_ = layer == kTableSum ? info().config.table_columns()
                                : info().config.hidden_size;
  request_.answer = {columns_ * int64_t{sizeof(float)},
                     limits.max_answer_bytes};
  request_.inputs = std::move(request->inputs);
  return CheckInputs({"", info().limits, *per_input, limits.max_answer_bytes},
                     &request_.inputs);
}

}  // namespace encoderd
