#include "server/rpc/unary_call.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "server/api/publish.h"
#include "server/base/catch_all.h"
#include "server/base/steady_time.h"
#include "server/pipeline/errors.h"

namespace encoderd {

UnaryCall::UnaryCall(const CallEnvironment& environment, MethodMetrics* metrics,
                     Handler handler, grpc::CallbackServerContext* context,
                     grpc::ByteBuffer* reply)
    : environment_(environment),
      handler_(handler),
      context_(context),
      record_(Arrive(environment, metrics, context_)),
      reply_(reply) {
  environment_.state->Enter();
  record_.method->Entered();
}

void UnaryCall::Start(const grpc::ByteBuffer& request) {
  self_ = shared_from_this();
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
  CountAnswer(environment_, record_, absl::OkStatus(), work, answer->rejected);
  Finish(grpc::Status::OK);
}

void UnaryCall::Fail(const absl::Status& status) {
  if (answered_.exchange(true)) return;
  context_.LeavePlace();
  const absl::Status published = Publish(status);
  if (no_message_) {
    uncounted_ = published;
  } else {
    CountAnswer(environment_, record_, published);
  }
  Finish(context_.Failure(published));
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
  if (found.ok()) record_.model = *found;
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
  if (!uncounted_.ok()) {
    const bool left = [this] {
      absl::MutexLock lock(&mu_);
      return cancelled_;
    }();
    CountAnswer(environment_, record_,
                left ? absl::CancelledError() : uncounted_);
  }
  environment_.calls->Remove(this);
  environment_.held->Remove(this);
  record_.method->Left();
  environment_.state->Leave(refused_);
  const std::shared_ptr<UnaryCall> last = std::move(self_);
}

}  // namespace encoderd
