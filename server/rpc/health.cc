#include "server/rpc/health.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "grpcpp/support/server_callback.h"
#include "server/api/options.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/reasons.h"
#include "server/rpc/access.h"
#include "server/rpc/status.h"
#include "server/rpc/wire.h"

namespace encoderd {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

bool Known(const std::string& service) {
  return service.empty() || service == "encoderd.v1.Encoder" ||
         service == "readiness";
}

HealthCheckResponse::ServingStatus ToStatus(bool serving) {
  return serving ? HealthCheckResponse::SERVING
                 : HealthCheckResponse::NOT_SERVING;
}

grpc::ByteBuffer Answer(HealthCheckResponse::ServingStatus status) {
  HealthCheckResponse response;
  response.set_status(status);
  return SerializeMessage(response);
}

// The name of the requested service.
absl::StatusOr<std::string> ReadName(const grpc::ByteBuffer& bytes) {
  const auto size = static_cast<int64_t>(bytes.Length());
  if (size > kMaxHealthRequest) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     absl::StrCat("the request has ", size,
                                  " bytes; the limit is ", kMaxHealthRequest),
                     {reason::kRequestTooLarge,
                      {{"request_bytes", absl::StrCat(size)},
                       {"limit", absl::StrCat(kMaxHealthRequest)}},
                      "service"});
  }
  HealthCheckRequest request;
  const absl::Status status = ParseMessage(bytes, &request);
  if (!status.ok()) return status;
  return std::move(*request.mutable_service());
}

// The same for an authorized caller.
absl::StatusOr<std::string> Read(const Secrets* secrets,
                                 const grpc::CallbackServerContext& context,
                                 const grpc::ByteBuffer& bytes) {
  const auto caller = CallerOf(secrets, context, ConnectionOf(context));
  if (!caller.ok()) return caller.status();
  return ReadName(bytes);
}

}  // namespace

// One open Watch. Writes one message at a time, always the newest status; ends
// when the service or the caller says so. Deletes itself.
class HealthService::Watcher final
    : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  Watcher(HealthService* service, bool known)
      : service_(service), known_(known) {}

  // Ends it instead of the first status. Before Update.
  void Refuse(const absl::Status& status) {
    absl::MutexLock lock(&mu_);
    finished_ = true;
    Finish(ToGrpcStatus(status));
  }

  // Sets the current status; called with the service's lock held, like all
  // changes, so that the last one wins.
  void Update(bool serving) {
    absl::MutexLock lock(&mu_);
    wanted_ = known_ ? ToStatus(serving) : HealthCheckResponse::SERVICE_UNKNOWN;
    WriteNext();
  }
  void End() {
    absl::MutexLock lock(&mu_);
    ending_ = true;
    WriteNext();
  }

 private:
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (writing_ || finished_) return;
    if (wanted_ != written_ && !gone_) {
      written_ = wanted_;
      message_ = Answer(wanted_);
      writing_ = true;
      StartWrite(&message_);
    } else if (ending_ || gone_) {
      finished_ = true;
      Finish(gone_ ? grpc::Status::CANCELLED : ToGrpcStatus(DrainingError()));
    }
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mu_);
    writing_ = false;
    if (!ok) gone_ = true;
    WriteNext();
  }
  void OnCancel() override {
    absl::MutexLock lock(&mu_);
    gone_ = true;
    WriteNext();
  }
  void OnDone() override {
    service_->Remove(this);
    delete this;
  }

  HealthService* const service_;
  const bool known_;
  absl::Mutex mu_;
  grpc::ByteBuffer message_;  // stable during a write
  HealthCheckResponse::ServingStatus wanted_ ABSL_GUARDED_BY(mu_) =
      HealthCheckResponse::UNKNOWN;
  HealthCheckResponse::ServingStatus written_ ABSL_GUARDED_BY(mu_) =
      HealthCheckResponse::UNKNOWN;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  bool gone_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
};

HealthService::~HealthService() = default;

void HealthService::SetServing(bool serving) {
  absl::MutexLock lock(&mu_);
  serving_ = serving;
  for (Watcher* watcher : watchers_) watcher->Update(serving);
}

bool HealthService::serving() const {
  absl::MutexLock lock(&mu_);
  return serving_;
}

void HealthService::EndWatches() {
  absl::MutexLock lock(&mu_);
  ending_ = true;
  for (Watcher* watcher : watchers_) watcher->End();
}

int64_t HealthService::watches() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int64_t>(watchers_.size());
}

void HealthService::Remove(Watcher* watcher) {
  absl::MutexLock lock(&mu_);
  watchers_.erase(watcher);
}

grpc::ServerUnaryReactor* HealthService::Check(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto service = Read(secrets_, *context, *request);
  if (!service.ok()) {
    reactor->Finish(ToGrpcStatus(service.status()));
  } else if (Known(*service)) {
    *response = Answer(ToStatus(serving()));
    reactor->Finish(grpc::Status::OK);
  } else {
    const std::string name = ForMessage(*service);
    reactor->Finish(ToGrpcStatus(
        MakeError(absl::StatusCode::kNotFound,
                  absl::StrCat("no service '", name,
                               "'; available: '' (the whole server), "
                               "'encoderd.v1.Encoder', 'readiness'"),
                  {"SERVICE_NOT_FOUND", {{"service", name}}, "service"})));
  }
  return reactor;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* HealthService::Watch(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  const auto service = Read(secrets_, *context, *request);
  auto* watcher = new Watcher(this, service.ok() && Known(*service));
  absl::MutexLock lock(&mu_);
  const auto open = static_cast<int64_t>(watchers_.size());
  watchers_.insert(watcher);
  if (!service.ok()) {
    watcher->Refuse(service.status());
    return watcher;
  }
  if (open >= max_watches_) {
    watcher->Refuse(StreamsFullError(open, max_watches_));
    return watcher;
  }
  watcher->Update(serving_);
  if (ending_) watcher->End();
  return watcher;
}

}  // namespace encoderd
