// How the fake service answers with vectors: Embed and EmbedStream.
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "tests/support/fake_answers.h"
#include "tests/support/fake_encoder_service.h"

namespace encoderd::testing {
namespace {

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
    const grpc::Status bad = CheckFakeInput(input, i, TakesLong(options));
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
          CheckFakeInput(input, i, TakesLong(request.options()));
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

}  // namespace encoderd::testing
