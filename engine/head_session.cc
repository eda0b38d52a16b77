#include "engine/head_session.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/pooling.h"

namespace encoderd {
namespace {

bool IsPooled(const SequenceOutput& output) {
  return output.kind == SequenceOutput::Kind::kPooled;
}

class HeadSession final : public Session {
 public:
  HeadSession(std::unique_ptr<Session> session, const Head* head)
      : session_(std::move(session)),
        head_(*head),
        x_(head->widest()),
        y_(head->widest()) {}

  int64_t max_batch_tokens() const override {
    return session_->max_batch_tokens();
  }
  int64_t scratch_bytes() const override { return session_->scratch_bytes(); }

  void SetPauses(Pauses* pauses) override { session_->SetPauses(pauses); }

  absl::Status Run(const PackedBatch& batch,
                   absl::Span<const SequenceOutput> outputs,
                   ForwardResult* result) override {
    if (std::none_of(outputs.begin(), outputs.end(), IsPooled))
      return session_->Run(batch, outputs, result);
    plain_.assign(outputs.begin(), outputs.end());
    for (SequenceOutput& output : plain_) output.normalize = false;
    const absl::Status status = session_->Run(batch, plain_, &pooled_);
    if (status.ok()) Apply(outputs, result);
    // Of states it would keep as much as a Session's other memory.
    if (!std::all_of(outputs.begin(), outputs.end(), IsPooled))
      pooled_ = ForwardResult();
    return status;
  }

 private:
  void Apply(absl::Span<const SequenceOutput> outputs, ForwardResult* result) {
    Place(outputs, result);
    for (size_t b = 0; b < outputs.size(); ++b) {
      const absl::Span<const float> from =
          pooled_.Output(static_cast<int64_t>(b));
      float* out = result->values.data() + result->offsets[b];
      if (!IsPooled(outputs[b])) {
        std::copy(from.begin(), from.end(), out);
        continue;
      }
      std::copy(from.begin(), from.end(), x_.begin());
      head_.Apply(&x_, &y_);
      std::copy(x_.begin(), x_.begin() + head_.out(), out);
      if (outputs[b].normalize) NormalizeL2(out, head_.out());
    }
  }

  // Sizes `result`.
  void Place(absl::Span<const SequenceOutput> outputs, ForwardResult* result) {
    int64_t end = 0;
    result->offsets.assign(1, 0);
    for (size_t b = 0; b < outputs.size(); ++b) {
      end += IsPooled(outputs[b]) ? head_.out()
                                  : pooled_.offsets[b + 1] - pooled_.offsets[b];
      result->offsets.push_back(end);
    }
    result->values.resize(end);
    result->note = std::move(pooled_.note);
  }

  const std::unique_ptr<Session> session_;
  const Head& head_;
  // Of the pass that runs.
  std::vector<SequenceOutput> plain_;
  ForwardResult pooled_;
  std::vector<float> x_;
  std::vector<float> y_;
};

}  // namespace

std::unique_ptr<Session> NewHeadSession(std::unique_ptr<Session> session,
                                        const Head* head) {
  return std::make_unique<HeadSession>(std::move(session), head);
}

}  // namespace encoderd
