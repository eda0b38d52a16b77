#include "server/observe/http_connection.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "server/observe/http_head.h"

namespace encoderd {
namespace {

constexpr absl::string_view kEmptyLine = "\r\n\r\n";

}  // namespace

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

bool HttpConnection::AnswerScrape(std::shared_ptr<const std::string> answer) {
  Answer(std::move(answer));
  if (absl::StartsWith(head_, "HEAD ")) {
    unsent_ = unsent_.substr(0, unsent_.find(kEmptyLine) + kEmptyLine.size());
  }
  return Advance(HttpSources());  // which only reading asks
}

void HttpConnection::Answer(std::shared_ptr<const std::string> answer) {
  answer_ = std::move(answer);
  unsent_ = *answer_;
  state_ = State::kWriting;
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
    Answer(std::make_shared<const std::string>(AnswerHttp(*head, sources)));
  } else if (head_.size() >= kMaxHead) {
    Answer(std::make_shared<const std::string>(HeadTooLargeHttp(kMaxHead)));
  }
  return Step::kOn;
}

HttpConnection::Step HttpConnection::Write() {
  const ssize_t size = socket_.Write(unsent_.data(), unsent_.size());
  if (size == StreamSocket::kNotNow) return Step::kWait;
  if (size == StreamSocket::kOver) return Step::kDone;
  unsent_.remove_prefix(static_cast<size_t>(size));
  if (unsent_.empty()) {
    answer_ = nullptr;
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
