#include "server/observe/http_connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace encoderd {
namespace {

bool NotNow() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

HttpConnection::~HttpConnection() { close(fd_); }

bool HttpConnection::Advance(const HttpSources& sources) {
  Step step = Step::kOn;
  while (step == Step::kOn) {
    switch (state_) {
      case State::kReading:
        step = Read(sources);
        break;
      case State::kWriting:
        step = Write();
        break;
      case State::kPassingOver:
        step = PassOver();
        break;
    }
  }
  return step == Step::kWait;
}

HttpConnection::Step HttpConnection::Read(const HttpSources& sources) {
  char buffer[1024];
  const ssize_t size = recv(fd_, buffer, sizeof(buffer), 0);
  if (size <= 0) return size < 0 && NotNow() ? Step::kWait : Step::kDone;
  head_.append(buffer, static_cast<size_t>(size));
  const size_t end = head_.find("\r\n\r\n");
  if (end != std::string::npos) {
    answer_ = AnswerHttp(absl::string_view(head_).substr(0, end), sources);
  } else if (head_.size() > kMaxHead) {
    answer_ = HeadTooLargeHttp(kMaxHead);
  }
  if (!answer_.empty()) state_ = State::kWriting;
  return Step::kOn;
}

HttpConnection::Step HttpConnection::Write() {
  const ssize_t size = send(fd_, answer_.data() + written_,
                            answer_.size() - written_, MSG_NOSIGNAL);
  if (size < 0) return NotNow() ? Step::kWait : Step::kDone;
  written_ += static_cast<size_t>(size);
  if (written_ == answer_.size()) {
    shutdown(fd_, SHUT_WR);
    state_ = State::kPassingOver;
  }
  return Step::kOn;
}

HttpConnection::Step HttpConnection::PassOver() {
  char buffer[4096];
  const ssize_t size = recv(fd_, buffer, sizeof(buffer), 0);
  if (size <= 0) return size < 0 && NotNow() ? Step::kWait : Step::kDone;
  passed_over_ += static_cast<size_t>(size);
  return passed_over_ > kMaxPassedOver ? Step::kDone : Step::kOn;
}

}  // namespace encoderd
