// The wire: what gRPC hands over -> a checked job; results -> what gRPC sends.
#include <utility>

#include "server/rpc/convert.h"
#include "server/rpc/wire.h"
#include "tests/instructions/hot_path.h"
#include "tests/support/fake_model.h"

namespace encoderd {
namespace {

constexpr int kInputs = 64;  // of a request
constexpr int kHiddenSize = 384;

// A served model that nothing is submitted to.
class RpcPath : public HotPath {
 protected:
  RpcPath() {
    FakeModelOptions options;
    options.hidden_size = kHiddenSize;
    auto served = std::make_unique<ServedModel>();
    served->name = "fake";
    served->model = std::make_shared<FakeModel>(options);
    served->metrics = metrics_.ForModel("fake");
    models_.Add(std::move(served));
    environment_.api.models = &models_;
    environment_.api.limits.max_inputs = kInputs;
    environment_.api.limits.max_answer_bytes = 1 << 26;
    environment_.metrics = &metrics_;
  }

  const CallEnvironment& environment() const { return environment_; }

  // As a call does: the model, then the job.
  EmbedJob MakeJob(EmbedRequest request) const {
    const auto model = models_.Find(request.model);
    Require(model.ok(), "a model is not found");
    auto job =
        EmbedJob::Make(**model, environment_.api.limits, std::move(request));
    Require(job.ok(), "a request is refused");
    return *std::move(job);
  }

 private:
  Metrics metrics_{{"fake"}, {{"Embed", true}}, ""};
  ModelRegistry models_;
  CallEnvironment environment_;
};

class RequestPath final : public RpcPath {
 public:
  explicit RequestPath(bool ids) {
    v1::EmbedRequest request;
    request.set_model("fake");
    request.set_request_id("0123456789abcdef");
    request.mutable_options()->set_normalize(true);
    request.mutable_options()->set_truncate(v1::TRUNCATE_END);
    request.mutable_options()->set_prompt_name("query");
    if (ids) {
      request.mutable_options()->clear_prompt_name();
      for (const TokenSequence& sequence : FixedSequences(kInputs)) {
        request.add_inputs()->mutable_tokens()->mutable_ids()->Add(
            sequence.token_ids.begin(), sequence.token_ids.end());
      }
    } else {
      for (std::string& text : FixedTexts(kInputs)) {
        request.add_inputs()->set_text(std::move(text));
      }
    }
    bytes_ = SerializeMessage(request);
  }

  int64_t Run() override {
    int64_t figure = 0;
    for (int i = 0; i < kRequests; ++i) {
      EmbedRequest request;
      Require(Read(environment(), bytes_, &request).ok(), "Read failed");
      figure += static_cast<int64_t>(request.inputs.size());
      const EmbedJob job = MakeJob(std::move(request));
      figure += static_cast<int64_t>(job.request_id().size());
    }
    return figure;
  }

 private:
  static constexpr int kRequests = 64;

  grpc::ByteBuffer bytes_;
};

class AnswerPath final : public RpcPath {
 public:
  AnswerPath(bool packed, EncodingChoice encoding)
      : values_(FixedValues(kHiddenSize)) {
    EmbedRequest request;
    request.inputs.assign(kInputs, TextInput{"text"});
    request.options.packed = packed;
    request.options.encoding = encoding;
    job_ = std::make_unique<EmbedJob>(MakeJob(std::move(request)));
  }

  void Prepare() override {
    PipelineResult result;
    result.tokens = 20 * kInputs;
    result.tokenize_time = result.queue_time = result.compute_time =
        absl::Milliseconds(1);
    result.outputs.resize(kInputs);
    for (InputResult& output : result.outputs) {
      output.values = values_;
      output.token_count = 20;
    }
    results_.assign(kAnswers, result);
  }

  int64_t Run() override {
    int64_t figure = 0;
    for (PipelineResult& result : results_) {
      WrittenAnswer answer;
      Require(Write(environment(), *job_, std::move(result), &answer).ok(),
              "there is no answer");
      figure += static_cast<int64_t>(answer.bytes.Length());
    }
    return figure;
  }

 private:
  static constexpr int kAnswers = 32;

  const std::vector<float> values_;
  std::unique_ptr<EmbedJob> job_;
  std::vector<PipelineResult> results_;
};

}  // namespace

HotPathPtr MakeRequestPath(bool ids) {
  return std::make_unique<RequestPath>(ids);
}
HotPathPtr MakeAnswerPath(bool packed, EncodingChoice encoding) {
  return std::make_unique<AnswerPath>(packed, encoding);
}

}  // namespace encoderd
