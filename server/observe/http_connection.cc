#include "server/observe/http_connection.h"

#include "absl/strings/string_view.h"
#include "server/observe/http_head.h"

namespace encoderd {

bool HttpConnection::Advance(const HttpSources& sources) {
  Step step = Step::kOn;
  while (step == Step::kOn) {
    switch (state_) {
      case State::kReading:
        step = Read(sources);
        break;
      case State::kWaiting:
        return true;
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

bool HttpConnection::AnswerScrape(const HttpSources& sources) {
  answer_ = AnswerHttp(head_, sources);
  state_ = State::kWriting;
  return Advance(sources);
}

HttpConnection::Step HttpConnection::Read(const HttpSources& sources) {
  char buffer[1024];
  const ssize_t size = socket_.Read(buffer, sizeof(buffer));
  if (size == StreamSocket::kNotNow) return Step::kWait;
  if (size == StreamSocket::kOver) return Step::kDone;
  head_.append(buffer, static_cast<size_t>(size));
  const auto head = FindHttpHead(absl::string_view(head_).substr(0, kMaxHead));
  if (head.has_value() && AsksForMetricsHttp(*head)) {
    head_ = std::string(*head);
    state_ = State::kWaiting;
  } else if (head.has_value()) {
    answer_ = AnswerHttp(*head, sources);
  } else if (head_.size() >= kMaxHead) {
    answer_ = HeadTooLargeHttp(kMaxHead);
  }
  if (!answer_.empty()) state_ = State::kWriting;
  return Step::kOn;
}

HttpConnection::Step HttpConnection::Write() {
  const ssize_t size =
      socket_.Write(answer_.data() + written_, answer_.size() - written_);
  if (size == StreamSocket::kNotNow) return Step::kWait;
  if (size == StreamSocket::kOver) return Step::kDone;
  written_ += static_cast<size_t>(size);
  if (written_ == answer_.size()) {
    socket_.EndWriting();
    state_ = State::kPassingOver;
  }
  return Step::kOn;
}

HttpConnection::Step HttpConnection::PassOver() {
  char buffer[4096];
  const ssize_t size = socket_.Read(buffer, sizeof(buffer));
  if (size == StreamSocket::kNotNow) return Step::kWait;
  if (size == StreamSocket::kOver) return Step::kDone;
  passed_over_ += static_cast<size_t>(size);
  return passed_over_ > kMaxPassedOver ? Step::kDone : Step::kOn;
}

}  // namespace encoderd
