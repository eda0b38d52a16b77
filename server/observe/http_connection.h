// One caller of the HTTP port: reads its head, writes the answer, and skips the
// rest until it hangs up, because closing with unread bytes could discard the
// answer. Not thread-safe; never blocks.
#ifndef ENCODERD_SERVER_OBSERVE_HTTP_CONNECTION_H_
#define ENCODERD_SERVER_OBSERVE_HTTP_CONNECTION_H_

#include <poll.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/net/stream_socket.h"
#include "server/observe/http.h"

namespace encoderd {

class HttpConnection {
 public:
  static constexpr size_t kMaxHead = 4096;         // bytes, with its empty line
  static constexpr size_t kMaxPassedOver = 65536;  // bytes after the head

  // As StreamSocket.
  HttpConnection(int fd, SSL_CTX* context, absl::Time until)
      : until(until), socket_(fd, context) {}
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Does as much as it can without blocking, except that it answers no request
  // for metrics. False once finished.
  bool Advance(const HttpSources& sources);
  // Answers the request for metrics that it waits with: `answer` is that to
  // GET. False once finished.
  bool AnswerScrape(std::shared_ptr<const std::string> answer);

  // What to poll for until the next Advance.
  pollfd poll_for() const { return {socket_.fd(), socket_.events(), 0}; }
  // Its request, for metrics, is complete and not answered yet.
  bool waits_for_metrics() const { return state_ == State::kWaiting; }
  // Its request is complete and its answer has not been sent.
  bool answer_due() const {
    return state_ == State::kWaiting || state_ == State::kWriting;
  }

  const absl::Time until;  // closed then in any case

 private:
  enum class State { kReading, kWaiting, kWriting, kPassingOver };
  enum class Step { kOn, kWait, kDone };

  void Answer(std::shared_ptr<const std::string> answer);
  Step Read(const HttpSources& sources);
  Step Write();
  Step PassOver();

  StreamSocket socket_;
  State state_ = State::kReading;
  std::string head_;
  std::shared_ptr<const std::string> answer_;  // other scrapes may share it
  absl::string_view unsent_;                   // of it
  size_t passed_over_ = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_OBSERVE_HTTP_CONNECTION_H_
