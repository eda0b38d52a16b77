#include "server/rpc/embed_stream.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "server/api/options.h"
#include "server/api/publish.h"
#include "server/base/catch_all.h"
#include "server/base/steady_time.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/reasons.h"
#include "server/rpc/convert.h"
#include "server/rpc/wire.h"

namespace encoderd {
namespace {

// `published`, with the number of the request that it is of.
absl::Status WithIndex(const absl::Status& published, int64_t index) {
  ErrorDetail detail = GetErrorDetail(published).value_or(ErrorDetail());
  detail.metadata["request_index"] = absl::StrCat(index);
  return WithRetryPause(
      MakeError(published.code(), published.message(), detail),
      GetRetryPause(published));
}

}  // namespace

EmbedStream* EmbedStream::Start(const CallEnvironment& environment,
                                MethodMetrics* metrics,
                                grpc::CallbackServerContext* context) {
  std::shared_ptr<EmbedStream> stream(
      new EmbedStream(environment, metrics, context));
  stream->self_ = stream;
  absl::Status admitted = stream->context_.Admit(environment.secrets);
  if (admitted.ok()) admitted = environment.state->Admit();
  if (admitted.ok()) {
    const int64_t limit = environment.max_streams;
    const int64_t open = environment.streams->Add(stream, limit);
    if (open >= limit) admitted = StreamsFullError(open, limit);
  }
  if (!admitted.ok()) {
    if (ReasonOf(admitted) == reason::kBearerTokenMissing) {
      stream->uncounted_ = admitted;
    } else {
      CountRefusedStream(environment, metrics, admitted);
    }
    stream->End(admitted);
  }
  stream->Pump();
  return stream.get();
}

void EmbedStream::OnReadDone(bool ok) {
  {
    absl::MutexLock lock(&mu_);
    reading_ = false;
    if (!ok) half_closed_ = true;
    taking_ = ok && !gone_ && !draining_ && !end_.has_value();
    ok = taking_;
  }
  if (ok) {
    Take(incoming_, requests_++);
    incoming_.Clear();
    absl::MutexLock lock(&mu_);
    taking_ = false;
  }
  Pump();
}

void EmbedStream::Take(const grpc::ByteBuffer& bytes, int64_t index) {
  Enter();
  CallRecord record = Arrive(environment_, metrics_, context_);
  const absl::Status status = CatchAll([&] { return Submit(bytes, &record); });
  if (status.ok()) return;
  absl::Status published = Publish(status);
  CountAnswer(environment_, record, published);
  const std::string request_id = FindString(
      bytes, v1::EmbedRequest::kRequestIdFieldNumber, kMaxRequestIdBytes);
  if (request_id.empty()) published = WithIndex(published, index);
  const bool ends =
      published.code() == absl::StatusCode::kUnauthenticated ||
      (request_id.empty() && ReasonOf(published) == reason::kMalformedMessage);
  if (ends) {
    End(published);
    Leave();
    return;
  }
  AnswerError(-1, request_id, published);
}

absl::Status EmbedStream::Submit(const grpc::ByteBuffer& bytes,
                                 CallRecord* record) {
  // Its token may be gone since the stream began, or have another limit.
  const absl::StatusOr<Caller> caller =
      context_.CallerNow(environment_.secrets);
  if (!caller.ok()) return caller.status();
  absl::Status status = environment_.state->Admit();
  EmbedRequest request;
  if (status.ok()) status = Read(environment_, bytes, &request);
  if (!status.ok()) return status;
  const auto named = environment_.api.models->Find(request.model);
  if (named.ok()) record->model = *named;
  if (request.request_id.empty()) return NoRequestIdError();
  if (!named.ok()) return named.status();
  auto job =
      EmbedJob::Make(**named, environment_.api.limits, std::move(request));
  if (!job.ok()) return job.status();

  auto held =
      std::make_shared<Held>(Held{*std::move(job), *record, 0, nullptr});
  held->bytes = static_cast<int64_t>(bytes.Length()) + held->job.AnswerBytes();
  int64_t id = 0;
  {
    absl::MutexLock lock(&mu_);
    id = next_id_++;
    held_[id] = held;
    window_.Add(held->bytes);
  }
  std::shared_ptr<PipelineCall> call;
  try {
    call = held->job.Submit(
        context_.deadline(), *caller,
        [self = shared_from_this(), id](absl::StatusOr<PipelineResult> result) {
          self->Done(id, std::move(result));
        });
  } catch (...) {  // no memory, and Done is never called
    absl::MutexLock lock(&mu_);
    if (held->answered) return absl::OkStatus();  // given up
    window_.Remove(held->bytes);
    held_.erase(id);
    throw;
  }
  bool gone = false;
  bool given_up = false;
  {
    absl::MutexLock lock(&mu_);
    held->call = call;
    given_up = given_up_;
    gone = gone_ || given_up;
  }
  if (gone) call->Cancel();
  if (given_up) GiveUp();
  return absl::OkStatus();
}

void EmbedStream::Done(int64_t id, absl::StatusOr<PipelineResult> result) {
  std::shared_ptr<Held> held;
  {
    absl::MutexLock lock(&mu_);
    const auto at = held_.find(id);
    if (at == held_.end() || at->second->answered) return;  // given up
    held = at->second;
    held->answered = true;
  }
  const CallWork work =
      result.ok() ? CallWork{result->tokens, result->stages} : CallWork();
  WrittenAnswer answer;
  const absl::Status status = CatchAll([&]() -> absl::Status {
    if (!result.ok()) return result.status();
    absl::Status fits =
        Write(environment_, held->job, *std::move(result), &answer);
    if (fits.ok()) {
      fits = environment_.unread->Add(
          shared_from_this(), context_.connection(),
          static_cast<int64_t>(answer.bytes.Length()), SteadyNow());
    }
    return fits;
  });
  const absl::Status published = status.ok() ? status : Publish(status);
  CountAnswer(environment_, held->record, published, work, answer.rejected);
  if (published.ok()) {
    Push(id, answer.bytes);
  } else {
    AnswerError(id, held->job.request_id(), published);
  }
}

void EmbedStream::AnswerError(int64_t id, const std::string& request_id,
                              const absl::Status& published) {
  grpc::ByteBuffer answer = WriteError(request_id, published);
  const absl::Status room = environment_.unread->Add(
      shared_from_this(), context_.connection(),
      static_cast<int64_t>(answer.Length()), SteadyNow());
  if (!room.ok()) {
    End(room);
    answer.Clear();
  }
  Push(id, answer);
}

void EmbedStream::Enter() {
  environment_.state->Enter();
  metrics_->Entered();
}

void EmbedStream::Leave() {
  metrics_->Left();
  environment_.state->Leave();
}

void EmbedStream::Push(int64_t id, grpc::ByteBuffer answer) {
  bool dropped = false;
  {
    absl::MutexLock lock(&mu_);
    if (const auto at = held_.find(id); at != held_.end()) {
      window_.Remove(at->second->bytes);
      held_.erase(at);
    }
    dropped = gone_ || !answer.Valid();
    if (!dropped) {
      window_.Add(static_cast<int64_t>(answer.Length()));
      answers_.push_back(std::move(answer));
    }
  }
  if (dropped) Leave();
  Pump();
}

void EmbedStream::OnWriteDone(bool ok) {
  int64_t written = 0;
  {
    absl::MutexLock lock(&mu_);
    writing_ = false;
    written = static_cast<int64_t>(outgoing_.Length());
    window_.Remove(written);
    outgoing_.Clear();
  }
  environment_.unread->Remove(this, written, SteadyNow());
  Leave();
  if (!ok) Gone();
  Pump();
}

void EmbedStream::OnCancel() {
  Gone();
  Pump();
}

// Also cancels the work of the stream.
void EmbedStream::Gone() {
  std::vector<std::shared_ptr<PipelineCall>> calls;
  size_t dropped = 0;
  {
    absl::MutexLock lock(&mu_);
    gone_ = true;
    for (const auto& entry : held_) {
      if (entry.second->call != nullptr) calls.push_back(entry.second->call);
    }
    for (const grpc::ByteBuffer& answer : answers_) {
      window_.Remove(static_cast<int64_t>(answer.Length()));
    }
    dropped = answers_.size();
    answers_.clear();
  }
  for (; dropped > 0; --dropped) Leave();
  for (const auto& call : calls) call->Cancel();
}

void EmbedStream::Drain() {
  {
    absl::MutexLock lock(&mu_);
    draining_ = true;
  }
  Pump();
}

void EmbedStream::GiveUp() {
  std::map<int64_t, std::shared_ptr<Held>> left;
  std::vector<std::shared_ptr<PipelineCall>> calls;
  {
    absl::MutexLock lock(&mu_);
    given_up_ = true;
    for (const auto& [id, held] : held_) {
      if (held->answered) continue;
      held->answered = true;
      left[id] = held;
      if (held->call != nullptr) calls.push_back(held->call);
    }
  }
  const absl::Status published = Publish(GivenUpError());
  for (const auto& [id, held] : left) {
    CountAnswer(environment_, held->record, published);
    AnswerError(id, held->job.request_id(), published);
  }
  for (const auto& call : calls) call->Cancel();
}

// The first reason stays.
void EmbedStream::End(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (!end_.has_value()) end_ = status;
}

void EmbedStream::Pump() {
  {
    absl::MutexLock lock(&mu_);
    if (pumping_) return;  // the thread that does will see this change
    pumping_ = true;
  }
  while (true) {
    Action action = Action::kNone;
    grpc::Status outcome;
    {
      absl::MutexLock lock(&mu_);
      action = NextAction();
      if (action == Action::kNone) pumping_ = false;
      if (action == Action::kFinish) outcome = Outcome();
    }
    if (action == Action::kRead) {
      StartRead(&incoming_);
    } else if (action == Action::kWrite) {
      StartWrite(&outgoing_);
    } else {
      if (action == Action::kFinish) {
        context_.LeavePlace();
        Finish(outcome);
      }
      return;
    }
  }
}

EmbedStream::Action EmbedStream::NextAction() {
  if (!writing_ && !answers_.empty()) {
    outgoing_.Swap(&answers_.front());
    answers_.pop_front();
    writing_ = true;
    return Action::kWrite;
  }
  const bool ending = half_closed_ || gone_ || draining_ || end_.has_value();
  if (!ending && !reading_ && !taking_ && window_.Room()) {
    reading_ = true;
    return Action::kRead;
  }
  if (ending && !taking_ && window_.empty()) return Action::kFinish;
  return Action::kNone;
}

grpc::Status EmbedStream::Outcome() const {
  if (gone_) return grpc::Status::CANCELLED;
  if (end_.has_value()) return context_.Failure(Publish(*end_));
  // Who had sent everything has all answers.
  if (half_closed_) return grpc::Status::OK;
  return context_.Failure(Publish(DrainingError()));
}

void EmbedStream::OnDone() {
  context_.Over();
  environment_.unread->RemoveAll(this);
  environment_.streams->Remove(this);
  if (!uncounted_.ok()) {
    const bool left = [this] {
      absl::MutexLock lock(&mu_);
      return gone_;
    }();
    CountRefusedStream(environment_, metrics_,
                       left ? absl::CancelledError() : uncounted_);
  }
  const std::shared_ptr<EmbedStream> last = std::move(self_);
}

}  // namespace encoderd
