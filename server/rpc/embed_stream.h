// EmbedStream: many EmbedRequests over one call, each answered by its
// request_id as soon as it is done.
//
// The next request is read only while the stream holds few and small ones
// (stream_window.h): in progress, or answered and not yet taken by the
// transport. So the requests of a caller that stops reading its answers soon
// stay unread, and its memory here is bounded; other streams are not affected.
// A request that fails is answered with its error and the stream continues,
// also if its bytes do not parse, as long as they contain its request_id. Other
// bytes that are not a message end the stream: a caller that sends them cannot
// match answers either. An error without a request_id has the request's number
// in the stream instead (request_index). An error that unread answers leave no
// room for ends the stream: its caller has others to read.
//
// Thread rule: mu_ synchronizes gRPC's reactions and the pipeline's threads;
// one thread at a time starts operations on the stream (Pump), without the
// lock. Lives until OnDone and the last answer of the pipeline.
#ifndef ENCODERD_SERVER_RPC_EMBED_STREAM_H_
#define ENCODERD_SERVER_RPC_EMBED_STREAM_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/api/embed.h"
#include "server/rpc/answered_call.h"
#include "server/rpc/call_context.h"
#include "server/rpc/call_environment.h"
#include "server/rpc/open_calls.h"
#include "server/rpc/stream_window.h"

namespace encoderd {

class EmbedStream final
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
      public OpenCall,
      public AnsweringCall,
      public std::enable_shared_from_this<EmbedStream> {
 public:
  // gRPC owns it until OnDone.
  static EmbedStream* Start(const CallEnvironment& environment,
                            MethodMetrics* metrics,
                            grpc::CallbackServerContext* context);

  void Drain() override;
  void GiveUp() override;
  void Cut() override { context_.Cancel(); }

 private:
  // A request in the pipeline.
  struct Held {
    EmbedJob job;
    CallRecord record;
    int64_t bytes = 0;  // of the request, and about those of its answer
    std::shared_ptr<PipelineCall> call;
    bool answered = false;  // an answer is being built; no second one may be
  };
  enum class Action { kNone, kRead, kWrite, kFinish };

  EmbedStream(const CallEnvironment& environment, MethodMetrics* metrics,
              grpc::CallbackServerContext* context)
      : environment_(environment), metrics_(metrics), context_(context) {}

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // One request, the index-th of the stream: goes into the pipeline, or is
  // answered with its error.
  void Take(const grpc::ByteBuffer& bytes, int64_t index);
  // record->model: set once it is known.
  absl::Status Submit(const grpc::ByteBuffer& bytes, CallRecord* record);
  void Done(int64_t id, absl::StatusOr<PipelineResult> result);
  // `id` as in Push. If unread answers leave no room even for an error, it ends
  // the stream with that: QUEUE_FULL.
  void AnswerError(int64_t id, const std::string& request_id,
                   const absl::Status& published);
  // A request is in flight between the two.
  void Enter();
  void Leave();
  // An answer, counted as unread, for the transport; `id` of its request or -1.
  // Without a buffer (not Valid) the request ends unanswered.
  void Push(int64_t id, grpc::ByteBuffer answer);
  void Gone();
  void End(const absl::Status& status);

  // Starts all operations that can start now.
  void Pump();
  Action NextAction() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  grpc::Status Outcome() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const CallEnvironment& environment_;
  MethodMetrics* const metrics_;
  CallContext context_;
  std::shared_ptr<EmbedStream> self_;  // until OnDone
  // A refusal for want of a token, to be counted in OnDone: as CANCELLED if the
  // caller is gone: its token may have been in headers that were cut short.
  absl::Status uncounted_;

  // Each used by one operation in progress.
  grpc::ByteBuffer incoming_;
  int64_t requests_ = 0;  // read so far
  grpc::ByteBuffer outgoing_;

  absl::Mutex mu_;
  std::map<int64_t, std::shared_ptr<Held>> held_ ABSL_GUARDED_BY(mu_);
  int64_t next_id_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<grpc::ByteBuffer> answers_ ABSL_GUARDED_BY(mu_);
  // Of held_, answers_ and, while writing_, outgoing_.
  StreamWindow window_ ABSL_GUARDED_BY(mu_);
  bool reading_ ABSL_GUARDED_BY(mu_) = false;
  bool taking_ ABSL_GUARDED_BY(mu_) = false;  // between a read and its Submit
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool half_closed_ ABSL_GUARDED_BY(mu_) = false;
  bool gone_ ABSL_GUARDED_BY(mu_) = false;  // answers are no longer accepted
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  bool given_up_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
  bool pumping_ ABSL_GUARDED_BY(mu_) = false;  // stays true from Finish on
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_EMBED_STREAM_H_
