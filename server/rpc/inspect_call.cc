#include "server/rpc/inspect_call.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "engine/checkpoint/position_inspection.h"
#include "google/protobuf/arena.h"
#include "server/pipeline/errors.h"
#include "server/rpc/answer.h"
#include "server/rpc/wire.h"

namespace encoderd {
namespace {

v1::PositionVerdict ToProto(PositionVerdict verdict) {
  switch (verdict) {
    case PositionVerdict::kUndecided:
      return v1::POSITION_VERDICT_UNSPECIFIED;
    case PositionVerdict::kTrained:
      return v1::POSITION_VERDICT_TRAINED;
    case PositionVerdict::kLooksRandom:
      return v1::POSITION_VERDICT_LOOKS_RANDOM;
    case PositionVerdict::kPartlyTrained:
      return v1::POSITION_VERDICT_PARTLY_TRAINED;
  }
  return v1::POSITION_VERDICT_UNSPECIFIED;
}

void SetFigures(const PositionInspection& inspection,
                v1::InspectPositionsResponse* response) {
  for (const double norm : inspection.norms) {
    response->add_norms(static_cast<float>(norm));
  }
  for (const NeighbourCosine& neighbour : inspection.profile) {
    v1::NeighbourSimilarity* entry = response->add_profile();
    entry->set_distance(static_cast<uint32_t>(neighbour.distance));
    entry->set_mean_cosine(static_cast<float>(neighbour.mean));
  }
  response->set_verdict(ToProto(inspection.verdict));
  response->set_verdict_cosine(static_cast<float>(inspection.verdict_cosine));
  response->set_threshold(static_cast<float>(inspection.threshold));
  response->set_change_row(static_cast<uint32_t>(inspection.change_row));
}

}  // namespace

absl::StatusOr<RowRange> ConvertInspect(
    int64_t rows, const v1::InspectPositionsRequest& request) {
  const int64_t first = request.first_row();
  const int64_t asked = request.row_count();
  if (asked > kMaxInspectedRows) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat("row_count is ", asked, "; at most ", kMaxInspectedRows,
                     " rows are inspected at once"),
        {"INVALID_OPTION",
         {{"value", absl::StrCat(asked)},
          {"limit", absl::StrCat(kMaxInspectedRows)}},
         "row_count"});
  }
  if (first >= rows || asked > rows - first) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat("first_row is ", first, " and row_count ", asked,
                     "; the position table has ", rows, " rows"),
        {"ROWS_OUT_OF_RANGE",
         {{"first_row", absl::StrCat(first)},
          {"row_count", absl::StrCat(asked)},
          {"limit", absl::StrCat(rows)}},
         first >= rows ? "first_row" : "row_count"});
  }
  const int64_t count =
      asked == 0 ? std::min(rows - first, kMaxInspectedRows) : asked;
  return RowRange{first, count};
}

absl::Status InspectPositionsCall::Handle(const grpc::ByteBuffer& bytes) {
  v1::InspectPositionsRequest request;
  const absl::Status status = ParseMessage(bytes, &request);
  if (!status.ok()) return status;
  const auto model = environment().models->Find(request.model());
  if (!model.ok()) return model.status();
  const auto range =
      ConvertInspect((*model)->model->position_rows().rows, request);
  if (!range.ok()) return range.status();

  model_ = *model;
  range_ = *range;
  cosine_ = request.cosine();
  values_ = request.values();
  const int64_t answer = LeastBytes();
  const int64_t limit = environment().limits.max_message_bytes;
  if (answer > limit) return AnswerTooLargeError(answer, limit, "");
  CancelWith(model_->pipeline->SubmitWork(
      caller(), deadline(),
      [this, alive = shared_from_this()](const absl::Status& status) {
        Continue([&] { return status.ok() ? Reply() : status; });
      }));
  return absl::OkStatus();
}

int64_t InspectPositionsCall::LeastBytes() const {
  int64_t floats = 1;  // a norm
  if (cosine_) floats += range_.count;
  if (values_) floats += model_->model->position_rows().cols;
  return range_.count * floats * int64_t{sizeof(float)};
}

absl::Status InspectPositionsCall::Reply() {
  const HostMatrix& table = model_->model->position_rows();
  google::protobuf::Arena arena;
  auto* response =
      google::protobuf::Arena::CreateMessage<v1::InspectPositionsResponse>(
          &arena);
  response->set_model(model_->name);
  response->set_position_scheme(model_->description.position_scheme());
  response->set_table_rows(static_cast<uint32_t>(table.rows));
  response->set_columns(static_cast<uint32_t>(table.cols));
  response->set_first_row(static_cast<uint32_t>(range_.first));
  response->set_row_count(static_cast<uint32_t>(range_.count));
  SetFigures(InspectPositionRows(table, range_.first, range_.count), response);
  if (cosine_) {
    const std::vector<float> cosines =
        PositionCosines(table, range_.first, range_.count);
    PackVector(VectorFormat::kFloat32, {}, cosines, response->mutable_cosine());
  }
  if (values_) {
    PackVector(
        VectorFormat::kFloat32, {},
        absl::MakeConstSpan(table.Row(range_.first), range_.count * table.cols),
        response->mutable_values());
  }
  Answer(*response, "");
  return absl::OkStatus();
}

}  // namespace encoderd
