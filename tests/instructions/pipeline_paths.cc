// Scheduling: the policy alone, and the way of requests through the pipeline.
//
// Threads would wait for one another in another order in each run. So the path
// calls on one thread what the pipeline's threads call; the hand-over between
// them is not counted.
#include <utility>

#include "server/observe/pipeline_reporter.h"
#include "server/pipeline/admission.h"
#include "server/pipeline/batch_policy.h"
#include "server/pipeline/batch_runner.h"
#include "server/pipeline/call.h"
#include "server/pipeline/tokenizer_pool.h"
#include "server/pipeline/work_queue.h"
#include "tests/instructions/hot_path.h"
#include "tests/support/fake_session.h"
#include "tests/support/fake_tokenizer.h"

namespace encoderd {
namespace {

constexpr int64_t kBatchTokens = 4096;
constexpr FairShares kShares = {kBatchTokens / 4, kBatchTokens, 128};
constexpr int kCallers = 16;

absl::Time FixedNow() { return absl::FromUnixSeconds(1000); }

BatchLimits OneSession() {
  BatchLimits limits;
  limits.max_tokens = kBatchTokens;
  limits.min_tokens = kBatchTokens / 8;
  return limits;
}

class PolicyPath final : public HotPath {
 public:
  void Prepare() override {
    lengths_.assign(kRequests, {});
    const std::vector<TokenSequence> sequences = FixedSequences(kRequests);
    size_t next = 0;
    for (int i = 0; i < kRequests; ++i) {
      const int64_t count = 1 + sequences[i].size() % kMostSequences;
      for (int64_t k = 0; k < count; ++k) {
        const int64_t tokens = sequences[next++ % kRequests].size();
        lengths_[i].push_back(static_cast<int32_t>(tokens));
      }
    }
  }

  int64_t Run() override {
    BatchPolicy policy(kShares);
    for (int i = 0; i < kRequests; ++i) {
      const absl::Time deadline = i % 4 == 0 ? FixedNow() + absl::Seconds(i + 1)
                                             : absl::InfiniteFuture();
      policy.Add(i, i % kCallers, deadline, std::move(lengths_[i]));
    }
    int64_t figure = 0;
    while (!policy.empty()) {
      const BatchDecision batch = policy.Next(OneSession(), FixedNow());
      figure += batch.tokens * static_cast<int64_t>(batch.slices.size());
    }
    return figure;
  }

 private:
  static constexpr int kRequests = 1024;
  static constexpr int64_t kMostSequences = 32;  // of a request

  std::vector<std::vector<int32_t>> lengths_;
};

class PipelinePath final : public HotPath, public CallHost {
 public:
  PipelinePath() : texts_(FixedTexts(kRequests * kInputs)) {
    device_.SetLogging(false);
    device_.SetHashing(false);
    session_ = device_.NewSession();
    runner_ = std::make_unique<BatchRunner>(session_.get(), queue_.get(),
                                            Limits(), &observer_, FixedNow);
  }

  void Prepare() override {
    requests_.assign(kRequests, {});
    for (int i = 0; i < kRequests; ++i) {
      const bool windows = i % 4 == 0;
      requests_[i].caller.id = i % kCallers;
      if (windows) requests_[i].window_overlap = 32;
      for (int k = 0; k < kInputs; ++k) {
        // A byte is a token.
        const size_t bytes = windows && k == 0 ? 400 : 4 + 17 * k % 100;
        requests_[i].inputs.push_back(
            TextInput{texts_[i * kInputs + k].substr(0, bytes)});
      }
    }
  }

  int64_t Run() override {
    figure_ = 0;
    in_flight_ = 0;
    for (PipelineRequest& request : requests_) Submit(std::move(request));
    Work work;
    while (in_flight_ > 0) {
      queue_->TryTake(OneSession(), FixedNow(), &work);
      runner_->Run(&work);
    }
    return figure_;
  }

  void CallFinished() override { --in_flight_; }

 private:
  static constexpr int kRequests = 128;
  static constexpr int kInputs = 8;

  static IdLimits Limits() {
    IdLimits limits;
    limits.token_rows = FakeTokenizer::kVocab;
    limits.segment_rows = 2;
    limits.position_rows = limits.max_len = 256;
    return limits;
  }

  // What Pipeline::Submit and Pipeline::Tokenized do.
  void Submit(PipelineRequest request) {
    ++in_flight_;
    const auto call = std::make_shared<Call>(
        next_id_++, std::move(request),
        [this](absl::StatusOr<PipelineResult> result) { Count(result); }, this,
        queue_, FixedNow());
    int64_t tokens = 0;
    int64_t bytes = 0;
    bool exact = true;
    for (const Input& input : call->inputs.waiting()) {
      bytes += InputBytes(input);
      tokens += encoder_.EstimateTokens(input, call->inputs.rules(), &exact);
    }
    auto permit = admission_.Admit(tokens, !exact, bytes, call->caller);
    Require(permit.ok(), "a request is refused");
    call->permit = *std::move(permit);
    Tokenize({0, kInputs}, encoder_, scratch_.get(), &buffer_, FixedNow(),
             call.get());
    Require(call->inputs.Check().ok() &&
                call->permit.Settle(call->inputs.tokens()).ok(),
            "a request is refused after tokenizing");
    std::vector<int32_t> lengths = call->StartComputing(encoder_);
    for (const int32_t length : lengths) observer_.InputTokens(length);
    queue_->Add(call, std::move(lengths), FixedNow());
  }

  void Count(const absl::StatusOr<PipelineResult>& result) {
    Require(result.ok(), "a request failed");
    figure_ += result->tokens;
    for (const InputResult& output : result->outputs) {
      figure_ += static_cast<int64_t>(output.values.size());
    }
  }

  const std::vector<std::string> texts_;
  Metrics metrics_{{"fake"}, {{"Embed", true}}, ""};
  PipelineReporter observer_{&metrics_, "fake", [] {}};
  FakeTokenizer tokenizer_;
  const TokenizerScratchPtr scratch_ = tokenizer_.NewScratch();
  const InputEncoder encoder_{&tokenizer_, Limits()};
  Admission admission_{1 << 30, 1 << 30};
  const std::shared_ptr<WorkQueue> queue_ =
      std::make_shared<WorkQueue>(kShares, &observer_);
  FakeDevice device_{kBatchTokens, /*hidden_size=*/384};
  std::unique_ptr<Session> session_;
  std::unique_ptr<BatchRunner> runner_;

  Encoding buffer_;
  std::vector<PipelineRequest> requests_;
  uint64_t next_id_ = 1;
  int64_t in_flight_ = 0;
  int64_t figure_ = 0;
};

}  // namespace

HotPathPtr MakePolicyPath() { return std::make_unique<PolicyPath>(); }
HotPathPtr MakePipelinePath() { return std::make_unique<PipelinePath>(); }

}  // namespace encoderd
