// What the fake service tells of its model and its position table.
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/support/fake_encoder_service.h"

namespace encoderd::testing {
namespace {

void FillModel(v1::Model* model) {
  model->set_name("fake");
  model->set_architecture("bert");
  model->set_hidden_size(FakeEncoderService::kHiddenSize);
  model->set_dimensions(FakeEncoderService::kHiddenSize);
  model->set_num_hidden_layers(FakeEncoderService::kLayers);
  model->set_max_len(FakeEncoderService::kMaxLen);
  model->set_max_len_source(v1::MAX_LEN_SOURCE_POSITION_TABLE);
  model->set_pooling(v1::POOLING_MEAN);
  model->set_dtype("fp32");
  model->mutable_position_table()->set_rows(FakeEncoderService::kMaxLen);
  model->set_position_offset(FakeEncoderService::kPaddingRows);
}

}  // namespace

void FakeEncoderService::RefuseModels(grpc::Status status) {
  absl::MutexLock lock(&mu_);
  models_refused_ = std::move(status);
}

void FakeEncoderService::SetVerdict(v1::PositionVerdict verdict) {
  absl::MutexLock lock(&mu_);
  verdict_ = verdict;
}

void FakeEncoderService::SetPooling(v1::Pooling pooling) {
  absl::MutexLock lock(&mu_);
  pooling_ = pooling;
}

grpc::Status FakeEncoderService::InspectPositions(
    grpc::ServerContext* context, const v1::InspectPositionsRequest* request,
    v1::InspectPositionsResponse* response) {
  const grpc::Status shut = door_.Check(*context);
  if (!shut.ok()) return shut;
  const uint32_t first = request->first_row();
  if (first >= kMaxLen || request->row_count() > kMaxLen - first) {
    return FakeError(grpc::StatusCode::INVALID_ARGUMENT,
                     absl::StrCat("first_row is ", first), "ROWS_OUT_OF_RANGE",
                     {{"first_row", absl::StrCat(first)}}, "first_row");
  }
  const uint32_t count =
      request->row_count() == 0 ? kMaxLen - first : request->row_count();
  response->set_model("fake");
  response->set_position_scheme("learned");
  response->set_table_rows(kMaxLen);
  response->set_columns(kHiddenSize);
  response->set_first_row(first);
  response->set_row_count(count);
  std::vector<float> values, cosine;
  for (uint32_t r = 0; r < count; ++r) {
    response->add_norms(static_cast<float>(first + r));
    for (int c = 0; c < kHiddenSize; ++c) {
      values.push_back(static_cast<float>(first + r) +
                       static_cast<float>(c) / 8);
    }
    for (uint32_t o = 0; o < count; ++o)
      cosine.push_back(r == o ? 1.0f : -0.5f);
  }
  const auto bytes = [](const std::vector<float>& from) {
    return std::string(reinterpret_cast<const char*>(from.data()),
                       from.size() * sizeof(float));
  };
  if (request->values()) response->set_values(bytes(values));
  if (request->cosine()) response->set_cosine(bytes(cosine));
  for (uint32_t distance = 1; distance < count; distance *= 2) {
    v1::NeighbourSimilarity* entry = response->add_profile();
    entry->set_distance(distance);
    entry->set_mean_cosine(0.5f / static_cast<float>(distance));
    entry->set_mean_centered_cosine(0.25f / static_cast<float>(distance));
  }
  response->set_verdict_cosine(0.5f);
  response->set_threshold(0.125f);
  response->set_change_row(kMaxLen / 2);
  absl::MutexLock lock(&mu_);
  response->set_verdict(verdict_);
  return grpc::Status::OK;
}

grpc::Status FakeEncoderService::ListModels(
    grpc::ServerContext* context, const v1::ListModelsRequest* request,
    v1::ListModelsResponse* response) {
  const grpc::Status shut = door_.Check(*context);
  if (!shut.ok()) return shut;
  FillModel(response->add_models());
  return grpc::Status::OK;
}

grpc::Status FakeEncoderService::GetModel(grpc::ServerContext* context,
                                          const v1::GetModelRequest* request,
                                          v1::Model* model) {
  const grpc::Status shut = door_.Check(*context);
  if (!shut.ok()) return shut;
  if (!request->model().empty() && request->model() != "fake") {
    return FakeError(grpc::StatusCode::NOT_FOUND,
                     absl::StrCat("model \"", request->model(),
                                  "\" is not served here; available: fake"),
                     "MODEL_NOT_FOUND",
                     {{"model", request->model()}, {"available", "fake"}},
                     "model");
  }
  FillModel(model);
  absl::MutexLock lock(&mu_);
  if (!models_refused_.ok()) return models_refused_;
  model->set_pooling(pooling_);
  model->set_max_inputs_per_request(max_inputs_);
  return grpc::Status::OK;
}

}  // namespace encoderd::testing
