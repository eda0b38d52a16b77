// How long a stream without an answer is waited for. Before the end, a call of
// the health service finds out whether there is a connection: streams wait for
// one, that call does not. Internal to the library. Not thread-safe: one job,
// one thread.
#ifndef ENCODERD_CLIENT_CPP_PATIENCE_H_
#define ENCODERD_CLIENT_CPP_PATIENCE_H_

#include <grpcpp/channel.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace encoderd::client {

class Patience {
 public:
  // time: without any answer, reconnecting included.
  Patience(std::shared_ptr<grpc::Channel> channel, absl::Duration time);
  // Cancels the call of the health service and waits for its end.
  ~Patience();

  // An answer came: the whole time is left again.
  void Heard();
  // `passed` went by without an answer. asks_why: begins the call, once it is
  // due; false: the server has said why there is no answer.
  void Waited(absl::Duration passed, bool asks_why);
  bool over() const { return silence_ >= time_; }
  // How long to wait at most: until the call is due, or the end.
  absl::Duration wait() const;
  // Why there is no connection. OK: there may be one.
  absl::Status WhyGone() const;

 private:
  class HealthCall;

  const std::shared_ptr<grpc::Channel> channel_;
  const absl::Duration time_;
  const absl::Duration last_;  // of it: for the call
  absl::Duration silence_;     // waited for since the last answer
  std::unique_ptr<HealthCall> call_;
};

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_PATIENCE_H_
