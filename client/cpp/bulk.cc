#include "client/cpp/bulk.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/bulk_stream.h"
#include "client/cpp/client.h"
#include "client/cpp/error.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/inputs.h"

namespace encoderd::client {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);  // asks stop
constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(2);
constexpr int kMostInFlight = 64;

// One request, from the source to its answer.
struct Pending {
  v1::EmbedRequest request;
  std::vector<int> sent_as;  // of each input: its place in request, or -1
  BulkAnswer answer;
  bool sent = false;
  bool answered = false;
  absl::Time not_before = absl::InfinitePast();
};

absl::Status FromDetails(const google::rpc::Status& error, int64_t first) {
  return FromGrpc(grpc::Status(static_cast<grpc::StatusCode>(error.code()),
                               error.message(), error.SerializeAsString()),
                  first);
}

// A RESOURCE_EXHAUSTED of the server's own, such as QUEUE_FULL, passes; one of
// gRPC's, without details, says that a message is too large.
bool WorthAnotherTry(const absl::Status& status) {
  return absl::IsUnavailable(status) || (absl::IsResourceExhausted(status) &&
                                         GetErrorDetails(status).has_value());
}

class Work {
 public:
  Work(v1::Encoder::Stub* stub, BulkSource source, const BulkOptions& options,
       const std::function<absl::Status(const BulkAnswer&)>& sink)
      : stub_(stub),
        source_(std::move(source)),
        options_(options),
        sink_(sink) {
    inputs_ = options.first_input;
    blank_.set_model(options.model);
    *blank_.mutable_options() = options.options;
    blank_.mutable_options()->set_packed(true);
    blank_.mutable_options()->set_on_error(v1::ON_ERROR_PER_INPUT);
  }

  absl::Status Run() {
    while (true) {
      const absl::Time asked = absl::Now();
      Fill();
      // What the source takes is not the server's silence.
      last_answer_ += absl::Now() - asked;
      const absl::Status status = Deliver();
      if (!status.ok()) return status;
      if (window_.empty() && ended_) {
        if (stream_ != nullptr) stream_->Finish(kLongestPause);
        return late_;
      }
      const absl::Status broken = Step();
      if (!broken.ok()) return broken;
    }
  }

 private:
  // Reads inputs into the window while it has room.
  void Fill() {
    while (!ended_ &&
           static_cast<int>(window_.size()) < options_.requests_in_flight) {
      auto pending = std::make_unique<Pending>();
      Read(pending.get());
      if (pending->answer.errors.empty()) return;
      window_.push_back(std::move(pending));
      ++made_;
    }
  }

  void Read(Pending* pending) {
    pending->request = blank_;
    pending->request.set_request_id(absl::StrCat(made_));
    pending->answer.first_input = inputs_;
    int64_t bytes = 0;
    while (static_cast<int>(pending->sent_as.size()) <
               options_.texts_per_request &&
           bytes < options_.bytes_per_request) {
      v1::Input input;
      absl::Status refused;
      const absl::StatusOr<bool> more = source_(&input, &refused);
      if (!more.ok()) late_ = more.status();
      if (!more.ok() || !*more) {
        ended_ = true;
        break;
      }
      if (refused.ok()) refused = CheckUtf8(input, inputs_);
      pending->sent_as.push_back(refused.ok() ? pending->request.inputs_size()
                                              : -1);
      if (refused.ok()) {
        bytes += static_cast<int64_t>(input.ByteSizeLong());
        *pending->request.add_inputs() = std::move(input);
      }
      pending->answer.errors.push_back(std::move(refused));
      ++inputs_;
    }
    pending->answer.embeddings.resize(pending->sent_as.size());
    pending->answered = pending->request.inputs().empty();
  }

  // Hands over what is answered, in order.
  absl::Status Deliver() {
    while (!window_.empty() && window_.front()->answered) {
      const absl::Status status = sink_(window_.front()->answer);
      if (!status.ok()) return status;
      window_.pop_front();
    }
    return absl::OkStatus();
  }

  // Connects, sends one request, or waits for what comes.
  absl::Status Step() {
    const absl::Time now = absl::Now();
    if (options_.stop != nullptr && options_.stop()) {
      return absl::CancelledError("stopped");
    }
    if (now - last_answer_ > options_.patience) return OutOfPatience();
    if (stream_ == nullptr) {
      if (now < connect_at_) {
        absl::SleepFor(std::min(connect_at_ - now, kTick));
        return absl::OkStatus();
      }
      for (const auto& pending : window_) pending->sent = false;
      stream_ = std::make_unique<BulkStream>(stub_);
    }
    Pending* next = NextToSend(now);
    if (next != nullptr && stream_->Writable()) {
      next->sent = true;
      stream_->Write(next->request);
      return absl::OkStatus();
    }
    stream_->Wait(/*for_write=*/next != nullptr, kTick);
    for (const v1::EmbedResponse& response : stream_->Take()) {
      const absl::Status status = Take(response);
      if (!status.ok()) return status;
    }
    return LookForTheEnd();
  }

  absl::Status OutOfPatience() const {
    if (!trouble_.ok()) return trouble_;
    return absl::DeadlineExceededError(
        absl::StrCat("the server answered nothing for ",
                     absl::FormatDuration(options_.patience)));
  }

  Pending* NextToSend(absl::Time now) {
    for (const auto& pending : window_) {
      if (!pending->sent && !pending->answered && pending->not_before <= now) {
        return pending.get();
      }
    }
    return nullptr;
  }

  absl::Status Take(const v1::EmbedResponse& response) {
    int64_t id = -1;
    const int64_t first_id = made_ - static_cast<int64_t>(window_.size());
    const bool known = absl::SimpleAtoi(response.request_id(), &id) &&
                       id >= first_id && id < made_ &&
                       !window_[id - first_id]->answered;
    if (!known) {
      return absl::InternalError(absl::StrCat("the server answered request \"",
                                              response.request_id(),
                                              "\", which does not wait"));
    }
    Pending& pending = *window_[id - first_id];
    if (response.has_error()) {
      const absl::Status error =
          FromDetails(response.error(), pending.answer.first_input);
      if (!WorthAnotherTry(error)) return error;
      trouble_ = error;
      const auto details = GetErrorDetails(error);
      pending.sent = false;
      pending.not_before =
          absl::Now() + (details.has_value() && details->retry_delay.has_value()
                             ? *details->retry_delay
                             : kFirstPause);
      return absl::OkStatus();
    }
    last_answer_ = absl::Now();
    pause_ = kFirstPause;
    trouble_ = absl::OkStatus();
    return Join(response, &pending);
  }

  static absl::Status Join(const v1::EmbedResponse& response,
                           Pending* pending) {
    if (response.embeddings_size() != pending->request.inputs_size()) {
      return absl::InternalError(absl::StrCat(
          "the server answered ", response.embeddings_size(),
          " embeddings for ", pending->request.inputs_size(), " inputs"));
    }
    for (size_t i = 0; i < pending->sent_as.size(); ++i) {
      const int at = pending->sent_as[i];
      if (at < 0) continue;
      // Inputs that were not sent stand between those that were.
      const int64_t moved =
          pending->answer.first_input + static_cast<int64_t>(i) - at;
      pending->answer.embeddings[i] = response.embeddings(at);
      pending->answer.errors[i] =
          FromDetails(response.embeddings(at).error(), moved);
    }
    pending->answered = true;
    return absl::OkStatus();
  }

  // A stream that ended is forgotten; the next Step opens another.
  absl::Status LookForTheEnd() {
    if (!stream_->ReadsEnded()) return absl::OkStatus();
    const grpc::Status end = stream_->Close();
    for (const v1::EmbedResponse& response : stream_->Take()) {
      const absl::Status status = Take(response);
      if (!status.ok()) return status;
    }
    stream_.reset();
    absl::Status status = FromGrpc(end, 0);
    if (status.ok()) {
      status = absl::UnavailableError("the server ended the stream early");
    }
    if (!WorthAnotherTry(status) && !absl::IsInternal(status)) return status;
    trouble_ = status;
    connect_at_ = absl::Now() + pause_;
    pause_ = std::min(2 * pause_, kLongestPause);
    return absl::OkStatus();
  }

  v1::Encoder::Stub* const stub_;
  BulkSource source_;
  const BulkOptions& options_;
  const std::function<absl::Status(const BulkAnswer&)>& sink_;
  v1::EmbedRequest blank_;
  std::deque<std::unique_ptr<Pending>> window_;  // in the list's order
  std::unique_ptr<BulkStream> stream_;  // after window_: it reads from it
  int64_t inputs_ = 0;                  // read so far
  int64_t made_ = 0;                    // requests; the next one's id
  bool ended_ = false;
  absl::Status late_;     // of the source: returned after what came before
  absl::Status trouble_;  // the last error that was not final
  absl::Time last_answer_ = absl::Now();
  absl::Time connect_at_ = absl::InfinitePast();
  absl::Duration pause_ = kFirstPause;
};

absl::Status Check(const BulkOptions& options) {
  if (options.texts_per_request < 1 || options.bytes_per_request < 1) {
    return absl::InvalidArgumentError(
        "texts_per_request and bytes_per_request must be at least 1");
  }
  if (options.requests_in_flight < 1 ||
      options.requests_in_flight > kMostInFlight) {
    return absl::InvalidArgumentError(
        absl::StrCat("requests_in_flight is ", options.requests_in_flight,
                     "; it must be from 1 to ", kMostInFlight));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Client::EmbedBulk(
    BulkSource source, const BulkOptions& options,
    const std::function<absl::Status(const BulkAnswer&)>& sink) const {
  const absl::Status checked = Check(options);
  if (!checked.ok()) return checked;
  return Work(stub_.get(), std::move(source), options, sink).Run();
}

}  // namespace encoderd::client
