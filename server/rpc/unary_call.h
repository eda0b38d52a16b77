// What all unary calls share: admission, the one place that catches exceptions,
// the answer (exactly once), cancellation and the count of calls in flight.
//
// One object per call, created by the service on a gRPC thread. Nothing here
// blocks. Lives until gRPC and the pipeline are done with it: an abandoned call
// is answered while the pipeline still works on it.
#ifndef ENCODERD_SERVER_RPC_UNARY_CALL_H_
#define ENCODERD_SERVER_RPC_UNARY_CALL_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/api/model_registry.h"
#include "server/observe/metrics.h"
#include "server/pipeline/request.h"
#include "server/rpc/answered_call.h"
#include "server/rpc/call_context.h"
#include "server/rpc/call_environment.h"
#include "server/rpc/convert.h"
#include "server/rpc/open_calls.h"

namespace encoderd {

class UnaryCall final : public grpc::ServerUnaryReactor,
                        public OpenCall,
                        public AnsweringCall,
                        public std::enable_shared_from_this<UnaryCall> {
 public:
  // The part of the method: reads and submits. OK: Answer or Fail was or will
  // be called, from any thread. Any other status becomes the answer. May throw.
  using Handler = absl::Status (*)(const grpc::ByteBuffer& request,
                                   UnaryCall* call);

  UnaryCall(const CallEnvironment& environment, MethodMetrics* metrics,
            Handler handler, grpc::CallbackServerContext* context,
            grpc::ByteBuffer* reply);

  // The first half, on the gRPC thread: admission, then the handler. Call once,
  // before the reactor is handed to gRPC.
  void Start(const grpc::ByteBuffer& request);

  void Drain() override {}  // it answers its only request
  void GiveUp() override;
  void Cut() override;

  // --- For handlers.
  // The second half: runs `body` where exceptions are caught; a status that is
  // not OK is answered with. For continuations on other threads; a call that
  // is answered already does nothing there, and `body` must keep it alive.
  void Continue(const std::function<absl::Status()>& body);

  // Each call ends in exactly one of these; a second one is a bug and ignored.
  // Takes the bytes. work: what was computed for it.
  void Answer(WrittenAnswer* answer, const CallWork& work = {});
  void Fail(const absl::Status& status);

  // Sets the pipeline's handle, so that a caller that cancels also cancels its
  // work, even if it did so earlier. From here on the call waits and can be
  // abandoned.
  void CancelWith(std::shared_ptr<PipelineCall> call);

  // Finds the model of the request, for which the call is counted from then on.
  // Before CancelWith. NOT_FOUND: no such model.
  absl::StatusOr<const ServedModel*> FindModel(const std::string& name);

  const CallEnvironment& environment() const { return environment_; }
  absl::Time deadline() const;
  const Caller& caller() const { return context_.caller(); }

 private:
  void OnCancel() override;
  void OnDone() override;
  void CancelWork();

  const CallEnvironment& environment_;
  const Handler handler_;
  CallContext context_;
  CallRecord record_;  // constant once submitted
  grpc::ByteBuffer* const reply_;
  std::atomic<bool> answered_{false};
  std::shared_ptr<UnaryCall> self_;  // from Start to OnDone

  // A caller that resets a call before its message is complete looks like one
  // that ends it without a message until gRPC is done with it: the error of
  // such a call is counted only then.
  bool no_message_ = false;  // constant once started
  bool refused_ = false;     // before any work; constant once started
  absl::Status uncounted_;   // written before Finish, read in OnDone

  absl::Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<PipelineCall> pipeline_call_ ABSL_GUARDED_BY(mu_);
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_UNARY_CALL_H_
