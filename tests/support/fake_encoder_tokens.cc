// How the fake service answers with tokens: Encode and Tokenize.
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/fake_answers.h"
#include "tests/support/fake_encoder_service.h"

namespace encoderd::testing {

grpc::Status FakeEncoderService::Encode(grpc::ServerContext* context,
                                        const v1::EncodeRequest* request,
                                        v1::EncodeResponse* response) {
  if (const auto shut = door_.Check(*context); !shut.ok()) return shut;
  const grpc::Status many = BeginTokens(request->inputs_size());
  if (!many.ok()) return many;
  response->set_fingerprint(fingerprint());
  {
    absl::MutexLock lock(&mu_);
    last_encode_ = *request;
  }
  if (request->has_layer() && request->layer() > kLayers) {
    return FakeError(grpc::StatusCode::INVALID_ARGUMENT,
                     absl::StrCat("layer is ", request->layer(),
                                  "; the last layer is ", kLayers),
                     "LAYER_OUT_OF_RANGE",
                     {{"layer", absl::StrCat(request->layer())},
                      {"limit", absl::StrCat(kLayers)}},
                     "layer");
  }
  for (int i = 0; i < request->inputs_size(); ++i) {
    const grpc::Status status = CheckFakeInput(
        request->inputs(i), i, request->truncate() >= v1::TRUNCATE_START);
    const bool per_input = request->on_error() == v1::ON_ERROR_PER_INPUT;
    if (!status.ok() && !per_input) return status;
    const std::string& text = request->inputs(i).text();
    v1::TokenStates* states = response->add_states();
    if (!status.ok()) {
      states->mutable_error()->ParseFromString(status.error_details());
      continue;
    }
    states->set_rows(CountTokens(text));
    states->set_columns(kHiddenSize);
    states->set_token_count(CountTokens(text));
    for (uint32_t row = 0; row < states->rows(); ++row) {
      states->mutable_packed()->append(
          PackFloats(FakeVector(absl::StrCat(text, "#", row))));
    }
  }
  return grpc::Status::OK;
}

grpc::Status FakeEncoderService::Tokenize(grpc::ServerContext* context,
                                          const v1::TokenizeRequest* request,
                                          v1::TokenizeResponse* response) {
  if (const auto shut = door_.Check(*context); !shut.ok()) return shut;
  const grpc::Status many = BeginTokens(request->inputs_size());
  if (!many.ok()) return many;
  response->set_max_len(kMaxLen);
  for (const v1::Input& input : request->inputs()) {
    v1::TokenizedInput* result = response->add_inputs();
    result->add_tokens("[CLS]");
    for (const std::string& word : Words(input.text())) {
      result->add_tokens(word);
    }
    result->add_tokens("[SEP]");
    for (int i = 0; i < result->tokens_size(); ++i) {
      result->add_ids(100 + i);
      result->add_segment_ids(0);
      result->add_begin_offsets(i);
      result->add_end_offsets(i + 1);
    }
    result->set_token_count(result->tokens_size());
    result->set_fits(result->token_count() <= kMaxLen);
  }
  return grpc::Status::OK;
}

}  // namespace encoderd::testing
