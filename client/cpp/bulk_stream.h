// One EmbedStream call that never blocks its owner. Internal to the library and
// its command line.
//
// The owner, one thread, writes and takes answers; gRPC's threads fill in what
// comes. Answers that were not taken are as many as requests not answered.
#ifndef ENCODERD_CLIENT_CPP_BULK_STREAM_H_
#define ENCODERD_CLIENT_CPP_BULK_STREAM_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/steady_time.h"
#include "encoderd/v1/encoder.grpc.pb.h"

namespace encoderd::client {

class BulkStream
    : public grpc::ClientBidiReactor<v1::EmbedRequest, v1::EmbedResponse> {
 public:
  // While no server listens, waits for one instead of ending with the reason.
  explicit BulkStream(v1::Encoder::Stub* stub);
  // Cancels what is still in flight and waits for its end.
  ~BulkStream() override;

  // Whether no Write is in progress and the call is still open.
  bool Writable() const;
  // Begins to send, once Writable(). Keeps the request: its answer may come
  // before gRPC has finished reading it.
  void Write(v1::EmbedRequest request);
  // Waits until there is an answer, the call ended, or (if `for_write`) it is
  // writable; at most `patience`.
  void Wait(bool for_write, absl::Duration patience) const;
  // The answers that came since the last time.
  std::vector<v1::EmbedResponse> Take();
  // Whether no answer comes any more.
  bool ReadsEnded() const;
  // Waits for the end of a call whose reads have ended; its status.
  grpc::Status Close();
  // Half-closes and waits, but at most `patience`, for the server's end.
  void Finish(absl::Duration patience);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  // The owner starts nothing any more.
  void Release();

  grpc::ClientContext context_;
  v1::EmbedRequest request_;    // of the write in progress
  v1::EmbedResponse response_;  // of the read in progress
  bool released_ = false;       // the owner's own
  mutable absl::Mutex mu_;
  mutable SteadyCondition changed_;  // what Wait and Finish wait for
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool reads_ended_ ABSL_GUARDED_BY(mu_) = false;
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::EmbedResponse> answers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_BULK_STREAM_H_
