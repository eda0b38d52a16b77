#include "tests/support/fake_answers.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/support/fake_encoder_service.h"

namespace encoderd::testing {

std::vector<std::string> Words(const std::string& text) {
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

uint32_t CountTokens(const std::string& text) {
  return static_cast<uint32_t>(Words(text).size()) + 2;
}

std::string PackFloats(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(float));
}

grpc::Status CheckFakeInput(const v1::Input& input, int index, bool cut) {
  const std::string field = absl::StrCat("inputs[", index, "]");
  if (input.text().empty()) {
    return FakeError(grpc::StatusCode::INVALID_ARGUMENT,
                     absl::StrCat(field, " is empty"), "EMPTY_INPUT",
                     {{"input_index", absl::StrCat(index)}}, field);
  }
  const uint32_t tokens = CountTokens(input.text());
  if (cut || tokens <= FakeEncoderService::kMaxLen) return grpc::Status::OK;
  return FakeError(
      grpc::StatusCode::INVALID_ARGUMENT,
      absl::StrCat(field, " has ", tokens, " tokens; this model takes at most ",
                   FakeEncoderService::kMaxLen),
      "INPUT_TOO_LONG",
      {{"input_index", absl::StrCat(index)},
       {"token_count", absl::StrCat(tokens)},
       {"max_tokens", absl::StrCat(FakeEncoderService::kMaxLen)}},
      field + ".text");
}

std::vector<float> FakeVector(const std::string& text) {
  uint32_t state = 2166136261u;  // FNV-1a, then a linear generator
  for (const char c : text) {
    state = (state ^ static_cast<uint8_t>(c)) * 16777619u;
  }
  std::vector<float> values;
  for (int i = 0; i < FakeEncoderService::kHiddenSize; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(state >> 8) / (1 << 23) - 1.0f);
  }
  return values;
}

grpc::Status FakeError(grpc::StatusCode code, const std::string& message,
                       const std::string& reason,
                       const std::map<std::string, std::string>& metadata,
                       const std::string& field) {
  google::rpc::Status status;
  status.set_code(code);
  status.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("encoderd");
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  status.add_details()->PackFrom(info);
  if (!field.empty()) {
    google::rpc::BadRequest request;
    auto* violation = request.add_field_violations();
    violation->set_field(field);
    violation->set_description(message);
    status.add_details()->PackFrom(request);
  }
  return grpc::Status(code, message, status.SerializeAsString());
}

}  // namespace encoderd::testing
