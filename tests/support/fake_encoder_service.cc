#include "tests/support/fake_encoder_service.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/support/patience.h"

namespace encoderd::testing {
namespace {

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

// OK, or the contract's refusal of inputs[index].
grpc::Status CheckInput(const v1::Input& input, int index, bool cut) {
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

// Whether texts past kMaxLen are taken.
bool TakesLong(const v1::EmbedOptions& options) {
  return options.truncate() >= v1::TRUNCATE_START || options.has_windows();
}

// What is told of a text that is taken.
void Tell(const v1::EmbedOptions& options, const std::string& text,
          v1::Embedding* embedding, v1::EmbedResponse* response) {
  embedding->set_token_count(CountTokens(text));
  if (embedding->token_count() > FakeEncoderService::kMaxLen) {
    embedding->set_truncated(!options.has_windows());
    embedding->set_windows(options.has_windows() ? 2 : 0);
  }
  v1::Usage& usage = *response->mutable_usage();
  usage.set_tokens(usage.tokens() + embedding->token_count());
}

}  // namespace

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

FakeEncoderService::FakeEncoderService(int port, FakeDoor door)
    : door_(std::move(door)) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", port),
                           door_.Credentials(), &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  target_ = absl::StrCat("127.0.0.1:", port_);
}

FakeEncoderService::~FakeEncoderService() {
  server_->Shutdown(absl::ToChronoTime(absl::Now()));
  server_->Wait();
}

void FakeEncoderService::FailNext(int count, grpc::Status status) {
  absl::MutexLock lock(&mu_);
  failures_left_ = count;
  failure_ = std::move(status);
}

void FakeEncoderService::SetDelay(absl::Duration delay) {
  absl::MutexLock lock(&mu_);
  delay_ = delay;
}

void FakeEncoderService::FailAfterStreamTexts(int64_t texts) {
  absl::MutexLock lock(&mu_);
  fail_after_ = texts;
}

void FakeEncoderService::BreakStreams(int count, int requests) {
  BreakStreams(count, requests,
               FakeError(grpc::StatusCode::UNAVAILABLE, "the server goes away",
                         "DRAINING", {}));
}

void FakeEncoderService::BreakStreams(int count, int requests,
                                      grpc::Status status) {
  absl::MutexLock lock(&mu_);
  broken_ = std::move(status);
  breaks_left_ = count;
  break_after_ = requests;
}

void FakeEncoderService::HoldUntilTogether(int calls) {
  absl::MutexLock lock(&mu_);
  hold_until_ = calls;
}

void FakeEncoderService::Delay(const v1::EmbedRequest& request,
                               const grpc::ServerContext& context) const {
  const std::string first =
      request.inputs_size() > 0 ? request.inputs(0).text() : "";
  if (!absl::StartsWith(first, "~")) return;
  absl::Time until = absl::InfiniteFuture();
  if (!absl::StartsWith(first, "~~")) until = absl::Now() + delay();
  while (absl::Now() < until && !context.IsCancelled()) {
    absl::SleepFor(absl::Milliseconds(2));
  }
}

int FakeEncoderService::streams() const {
  absl::MutexLock lock(&mu_);
  return streams_;
}

void FakeEncoderService::AwaitEndOfStreams() const {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(
      +[](const int* open) { return *open == 0; }, &open_streams_));
}

int64_t FakeEncoderService::stream_texts() const {
  absl::MutexLock lock(&mu_);
  return stream_texts_;
}

void FakeEncoderService::SetServing(bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(serving);
}

int FakeEncoderService::embed_calls() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int>(call_sizes_.size());
}

int FakeEncoderService::max_calls_together() const {
  absl::MutexLock lock(&mu_);
  return max_together_;
}

std::vector<int> FakeEncoderService::call_sizes() const {
  absl::MutexLock lock(&mu_);
  return call_sizes_;
}

v1::EncodeRequest FakeEncoderService::last_encode() const {
  absl::MutexLock lock(&mu_);
  return last_encode_;
}

v1::EmbedOptions FakeEncoderService::last_options() const {
  absl::MutexLock lock(&mu_);
  return last_options_;
}

grpc::Status FakeEncoderService::Begin(const v1::EmbedRequest& request) {
  absl::MutexLock lock(&mu_);
  max_together_ = std::max(max_together_, ++running_);
  const auto together = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return max_together_ >= hold_until_;
  };
  mu_.AwaitWithTimeout(absl::Condition(&together), kPatience);
  call_sizes_.push_back(request.inputs_size());
  last_options_ = request.options();
  if (failures_left_ == 0) return CheckCount(request.inputs_size());
  --failures_left_;
  return failure_;
}

void FakeEncoderService::End() {
  absl::MutexLock lock(&mu_);
  --running_;
}

grpc::Status FakeEncoderService::Embed(grpc::ServerContext* context,
                                       const v1::EmbedRequest* request,
                                       v1::EmbedResponse* response) {
  grpc::Status status = Begin(*request);
  if (status.ok()) status = door_.Check(*context);
  Delay(*request, *context);
  response->set_fingerprint(fingerprint());
  const v1::EmbedOptions& options = request->options();
  for (int i = 0; status.ok() && i < request->inputs_size(); ++i) {
    const v1::Input& input = request->inputs(i);
    const grpc::Status bad = CheckInput(input, i, TakesLong(options));
    if (!bad.ok() && options.on_error() == v1::ON_ERROR_PER_INPUT) {
      response->add_embeddings()->mutable_error()->ParseFromString(
          bad.error_details());
      continue;
    }
    status = bad;
    if (!status.ok()) break;
    std::vector<float> values = FakeVector(input.text());
    if (request->options().dimensions() > 0) {
      values.resize(request->options().dimensions());
    }
    v1::Embedding* embedding = response->add_embeddings();
    if (request->options().packed()) {
      embedding->set_packed(PackFloats(values));
    } else {
      embedding->mutable_floats()->mutable_values()->Add(values.begin(),
                                                         values.end());
    }
    Tell(options, input.text(), embedding, response);
  }
  End();
  return status;
}

grpc::Status FakeEncoderService::EmbedStream(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::EmbedResponse, v1::EmbedRequest>* stream) {
  const grpc::Status shut = door_.Check(*context);
  if (!shut.ok()) return shut;
  int left = -1;  // answers until it breaks
  grpc::Status broken;
  {
    absl::MutexLock lock(&mu_);
    ++streams_;
    ++open_streams_;
    broken = broken_;
    if (breaks_left_ > 0) {
      --breaks_left_;
      left = break_after_;
    }
  }
  const absl::Cleanup closed = [this] {
    absl::MutexLock lock(&mu_);
    --open_streams_;
  };
  v1::EmbedRequest request;
  while (stream->Read(&request)) {
    if (left == 0) return broken;
    --left;
    v1::EmbedResponse response;
    response.set_request_id(request.request_id());
    response.set_fingerprint(fingerprint());
    grpc::Status refused = Begin(request);
    {
      absl::MutexLock lock(&mu_);
      if (fail_after_ >= 0 && stream_texts_ >= fail_after_) {
        refused = FakeError(grpc::StatusCode::INTERNAL, "device fault 4711",
                            "DEVICE_FAULT", {{"error_id", "4711"}});
      } else {
        stream_texts_ += request.inputs_size();
      }
    }
    Delay(request, *context);
    if (!refused.ok()) {
      response.mutable_error()->ParseFromString(refused.error_details());
    }
    for (int i = 0; refused.ok() && i < request.inputs_size(); ++i) {
      const v1::Input& input = request.inputs(i);
      v1::Embedding* embedding = response.add_embeddings();
      const grpc::Status bad =
          CheckInput(input, i, TakesLong(request.options()));
      if (!bad.ok()) {
        embedding->mutable_error()->ParseFromString(bad.error_details());
        continue;
      }
      const std::vector<float> values = FakeVector(input.text());
      embedding->set_packed(PackFloats(values));
      if (request.options().encoding() == v1::ENCODING_INT8) {
        embedding->mutable_packed()->resize(values.size());  // any such bytes
        embedding->set_scale(values[0]);
      }
      Tell(request.options(), input.text(), embedding, &response);
    }
    End();
    stream->Write(response);
  }
  return grpc::Status::OK;
}

grpc::Status FakeEncoderService::Encode(grpc::ServerContext* context,
                                        const v1::EncodeRequest* request,
                                        v1::EncodeResponse* response) {
  if (const auto shut = door_.Check(*context); !shut.ok()) return shut;
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
    const grpc::Status status = CheckInput(
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
  const grpc::Status shut = door_.Check(*context);
  if (!shut.ok()) return shut;
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
