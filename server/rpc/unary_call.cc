#include "server/rpc/unary_call.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "engine/base/catch_all.h"
#include "engine/base/steady_time.h"
#include "server/api/publish.h"
#include "server/pipeline/errors.h"

namespace encoderd {

UnaryCall::UnaryCall(const CallEnvironment& environment, MethodMetrics* metrics,
                     Handler handler, grpc::CallbackServerContext* context,
                     grpc::ByteBuffer* reply)
    : environment_(environment),
      metrics_(metrics),
      model_(environment.metrics->NoModel()),
      handler_(handler),
      arrival_(SteadyNow()),
      context_(context),
      reply_(reply) {
  environment_.state->Enter();
  metrics_->Entered();
}

void UnaryCall::Start(const grpc::ByteBuffer& request) {
  self_ = shared_from_this();
  if (environment_.tracer != nullptr) {
    trace_ = environment_.tracer->Begin(context_.traceparent());
  }
  no_message_ = !request.Valid();
  Continue([this, &request] {
    absl::Status admitted = context_.Admit(environment_.secrets);
    const bool known = admitted.ok();
    if (known) admitted = environment_.state->Admit();
    if (admitted.ok()) return handler_(request, this);
    refused_ = true;
    environment_.state->Refuse();
    if (!known || !environment_.state->holding_refusals()) return admitted;
    environment_.held->Add(shared_from_this());
    return absl::OkStatus();
  });
}

void UnaryCall::Continue(const std::function<absl::Status()>& body) {
  if (answered_) return;
  const absl::Status status = CatchAll(body);
  if (!status.ok()) Fail(status);
}

void UnaryCall::Answer(WrittenAnswer* answer, const CallWork& work) {
  const absl::Status room = environment_.unread->Add(
      shared_from_this(), context_.connection(),
      static_cast<int64_t>(answer->bytes.Length()), SteadyNow());
  if (!room.ok()) {
    Fail(room);
    return;
  }
  if (answered_.exchange(true)) {
    environment_.unread->RemoveAll(this);
    return;
  }
  context_.LeavePlace();
  reply_->Swap(&answer->bytes);
  for (const std::string& reason : answer->rejected) model_->Rejected(reason);
  Finished(absl::StatusCode::kOk, "", work);
  Finish(grpc::Status::OK);
}

void UnaryCall::Fail(const absl::Status& status) {
  if (answered_.exchange(true)) return;
  context_.LeavePlace();
  const absl::Status published = Publish(status);
  if (no_message_) {
    uncounted_ = published;
  } else {
    Failed(published);
  }
  Finish(context_.Failure(published));
}

// Counted before the answer is sent, so that a caller with the answer finds it
// counted.
void UnaryCall::Finished(absl::StatusCode code, absl::string_view reason,
                         const CallWork& work, bool own_limit) {
  const absl::Time now = SteadyNow();
  metrics_->Answered(model_, code, reason, now - arrival_, own_limit);
  if (!trace_.has_value()) return;
  environment_.tracer->End({*trace_, metrics_->name(), model_name_, code,
                            std::string(reason), arrival_, now, work});
}

void UnaryCall::Failed(const absl::Status& published) {
  Finished(published.code(), ReasonOf(published), {}, IsCallerFull(published));
}

void UnaryCall::CountUncounted() {
  bool cancelled = false;
  {
    absl::MutexLock lock(&mu_);
    cancelled = cancelled_;
  }
  if (cancelled) {
    Finished(absl::StatusCode::kCancelled, "");
  } else {
    Failed(uncounted_);
  }
}

void UnaryCall::CancelWith(std::shared_ptr<PipelineCall> call) {
  bool cancelled = false;
  {
    absl::MutexLock lock(&mu_);
    cancelled = cancelled_;
    pipeline_call_ = call;
  }
  if (cancelled && call != nullptr) call->Cancel();
  if (!answered_) environment_.calls->Add(shared_from_this());
}

absl::StatusOr<const ServedModel*> UnaryCall::FindModel(
    const std::string& name) {
  auto found = environment_.api.models->Find(name);
  if (found.ok()) {
    model_ = (*found)->metrics;
    if (trace_.has_value()) model_name_ = (*found)->name;
  }
  return found;
}

absl::Time UnaryCall::deadline() const { return context_.deadline(); }

void UnaryCall::GiveUp() {
  Fail(GivenUpError());
  CancelWork();
}

void UnaryCall::Cut() { context_.Cancel(); }

void UnaryCall::OnCancel() { CancelWork(); }

void UnaryCall::CancelWork() {
  std::shared_ptr<PipelineCall> call;
  {
    absl::MutexLock lock(&mu_);
    cancelled_ = true;
    call = pipeline_call_;
  }
  if (call != nullptr) call->Cancel();
}

void UnaryCall::OnDone() {
  context_.Over();
  environment_.unread->RemoveAll(this);
  if (!uncounted_.ok()) CountUncounted();
  environment_.calls->Remove(this);
  environment_.held->Remove(this);
  metrics_->Left();
  environment_.state->Leave(refused_);
  const std::shared_ptr<UnaryCall> last = std::move(self_);
}

}  // namespace encoderd
