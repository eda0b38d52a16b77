#include "client/cpp/bulk.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/bulk_stream.h"
#include "client/cpp/calls.h"
#include "client/cpp/client.h"
#include "client/cpp/error.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/inputs.h"
#include "client/cpp/patience.h"
#include "client/cpp/requests.h"
#include "client/cpp/retry.h"
#include "client/cpp/same_model.h"
#include "client/cpp/steady_time.h"
#include "service_config.h"

namespace encoderd::client {
namespace {

constexpr absl::Duration kEndPatience = absl::Seconds(2);  // of a stream

// One request, from the source to its answer.
struct Pending {
  v1::EmbedRequest request;
  Cut cut;
  BulkAnswer answer;
  int64_t id = 0;
  bool sent = false;
  bool answered = false;
  absl::Time not_before = absl::InfinitePast();

  int64_t bytes() const { return static_cast<int64_t>(request.ByteSizeLong()); }
};

// A RESOURCE_EXHAUSTED of the server's own, such as QUEUE_FULL, passes; so does
// the wait of a request that expired in the queue.
bool WorthAnotherTry(const absl::Status& status) {
  return absl::IsUnavailable(status) ||
         (absl::IsResourceExhausted(status) &&
          GetErrorDetails(status).has_value()) ||
         GetReason(status) == "EXPIRED_IN_QUEUE";
}

// Whether fewer inputs may pass.
bool AsksForLess(const absl::Status& status) {
  const std::string reason = GetReason(status);
  return reason == kRequestTooLarge || reason == kTooManyInputs;
}

class Work {
 public:
  Work(v1::Encoder::Stub* stub, std::shared_ptr<grpc::Channel> channel,
       InputSource source, const EmbedOptions& embed,
       const BulkOptions& options,
       const std::function<absl::Status(const BulkAnswer&)>& sink)
      : stub_(stub),
        cutter_({[this, next = std::move(source.next)](v1::Input* input,
                                                       absl::Status* refused) {
                   if (Stopped(options_.stop)) {
                     return absl::StatusOr<bool>(StoppedError());
                   }
                   return next(input, refused);
                 },
                 std::move(source.ready)},
                options.texts_per_call, options.bytes_per_call,
                /*per_input=*/true, options.first_input),
        options_(options),
        sink_(sink),
        blank_(ToRequest(embed)),
        model_(embed.fingerprint, options.seen_fingerprint),
        patience_(std::move(channel), options.patience) {
    blank_.mutable_options()->set_on_error(v1::ON_ERROR_PER_INPUT);
  }

  absl::Status Run() {
    while (true) {
      const absl::Status status = Deliver();
      if (!status.ok()) return status;
      Fill();  // at once: no room in the window waits for an answer
      if (!window_.empty() && window_.front()->answered) continue;
      if (window_.empty()) {
        if (stream_ != nullptr) stream_->Finish(kEndPatience);
        return cutter_.status();
      }
      const absl::Status broken = Step();
      if (!broken.ok()) return broken;
    }
  }

 private:
  static absl::Status StoppedError() { return absl::CancelledError("stopped"); }

  bool HasRoom() const {
    return !cutter_.ended() &&
           static_cast<int>(window_.size()) < options_.calls_in_flight;
  }

  // Reads inputs into the window while it has room. Waits for them only where
  // there is nothing else to do.
  void Fill() {
    while (HasRoom() && (window_.empty() || cutter_.Ready())) {
      auto pending = std::make_unique<Pending>();
      pending->request = blank_;
      pending->cut = cutter_.Next(pending->request.mutable_inputs());
      if (pending->cut.sent_as.empty()) return;
      Prepare(pending.get());
      window_.push_back(std::move(pending));
    }
  }

  // Makes a request ready to be sent, under its own name.
  void Prepare(Pending* pending) {
    pending->id = made_++;
    pending->request.set_request_id(absl::StrCat(pending->id));
    pending->answer.first_input = pending->cut.first_input;
    pending->answer.errors = pending->cut.errors;
    pending->answer.embeddings.resize(pending->cut.sent_as.size());
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
    const absl::Time now = SteadyNow();
    if (Stopped(options_.stop)) return StoppedError();
    if (stream_ == nullptr) {
      if (now < connect_at_) {
        absl::SleepFor(std::min({connect_at_ - now, kTick, patience_.wait()}));
        return Waited(now);
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
    stream_->Wait(/*for_write=*/next != nullptr,
                  std::min(HasRoom() ? kInputTick : kTick, patience_.wait()));
    const absl::Status waited = Waited(now);
    const std::vector<v1::EmbedResponse> responses = stream_->Take();
    for (const v1::EmbedResponse& response : responses) {
      const absl::Status status = Take(response);
      if (!status.ok()) return status;
    }
    const absl::Status end = LookForTheEnd();
    return end.ok() && responses.empty() ? waited : end;
  }

  // A wait that took much longer than a tick was not the server's doing: the
  // process was stopped, or had no processor.
  absl::Status Waited(absl::Time since) {
    patience_.Waited(std::min(SteadyNow() - since, 2 * kTick), MayBeGone());
    if (!patience_.over()) return absl::OkStatus();
    const absl::Status gone =
        MayBeGone() ? patience_.WhyGone() : absl::OkStatus();
    if (!gone.ok()) return gone;
    if (!trouble_.ok()) return trouble_;
    return absl::DeadlineExceededError(
        absl::StrCat("no response from the server for ",
                     absl::FormatDuration(options_.patience)));
  }

  // Whether no server has said why there is no answer.
  bool MayBeGone() const {
    return !answered_ && (trouble_.ok() || (absl::IsUnavailable(trouble_) &&
                                            GetReason(trouble_).empty()));
  }

  Pending* NextToSend(absl::Time now) {
    for (const auto& pending : window_) {
      if (!pending->sent && !pending->answered && pending->not_before <= now) {
        return pending.get();
      }
    }
    return nullptr;
  }

  Pending* Find(const std::string& request_id) {
    int64_t id = -1;
    if (!absl::SimpleAtoi(request_id, &id)) return nullptr;
    for (const auto& pending : window_) {
      if (pending->id == id && !pending->answered) return pending.get();
    }
    return nullptr;
  }

  absl::Status Take(const v1::EmbedResponse& response) {
    answered_ = true;
    Pending* pending = Find(response.request_id());
    if (pending == nullptr) {
      return absl::InternalError(absl::StrCat("the server answered request \"",
                                              response.request_id(),
                                              "\", which is not in flight"));
    }
    if (response.has_error()) {
      return TakeError(StreamError(response.error(), pending->cut.first_input),
                       pending);
    }
    Heard();
    const absl::Status same = model_.Check(response.fingerprint());
    return same.ok() ? Join(response, pending) : same;
  }

  // The server does what it is asked for.
  void Heard() {
    patience_.Heard();
    pause_ = kFirstBackoff;
    trouble_ = absl::OkStatus();
  }

  absl::Status TakeError(const absl::Status& error, Pending* pending) {
    if (AsksForLess(error)) {
      Heard();
      SplitRequest(pending, error);
      return absl::OkStatus();
    }
    if (!WorthAnotherTry(error)) return error;
    const auto details = GetErrorDetails(error);
    trouble_ = error;
    pending->sent = false;
    pending->not_before =
        SteadyNow() + (details.has_value() && details->retry_delay.has_value()
                           ? std::max(*details->retry_delay, kLeastPause)
                           : kFirstBackoff);
    return absl::OkStatus();
  }

  static absl::Status Join(const v1::EmbedResponse& response,
                           Pending* pending) {
    const absl::Status count =
        CheckCount(response.embeddings_size(), pending->cut);
    if (!count.ok()) return count;
    for (size_t i = 0; i < pending->cut.sent_as.size(); ++i) {
      const int at = pending->cut.sent_as[i];
      if (at < 0) continue;
      pending->answer.embeddings[i] = response.embeddings(at);
      pending->answer.errors[i] =
          ErrorInPlace(response.embeddings(at).error(), pending->cut,
                       static_cast<int64_t>(i));
    }
    pending->answered = true;
    return absl::OkStatus();
  }

  // A request that the server finds too large is sent again as smaller ones
  // (FewerInputs); of a single input the error is its answer.
  void SplitRequest(Pending* pending, const absl::Status& error) {
    const auto inputs = static_cast<int64_t>(pending->cut.sent_as.size());
    if (inputs == 1) {
      pending->answer.errors[0] = WithInput(error, pending->cut);
      pending->answered = true;
      return;
    }
    const int64_t fewer = FewerInputs(error, inputs);
    if (GetReason(error) == kTooManyInputs) cutter_.TakeFewer(fewer);
    auto parts = Split(pending->cut, std::move(pending->request), fewer);
    auto place = std::find_if(
        window_.begin(), window_.end(),
        [pending](const auto& entry) { return entry.get() == pending; });
    place = window_.erase(place);
    for (auto& [cut, request] : parts) {
      auto part = std::make_unique<Pending>();
      part->cut = std::move(cut);
      part->request = std::move(request);
      Prepare(part.get());
      place = window_.insert(place, std::move(part)) + 1;
    }
  }

  // The request for whose size gRPC ended the stream; null if for none.
  Pending* FindTooLarge(const absl::Status& status) {
    if (!absl::IsResourceExhausted(status)) return nullptr;
    for (const auto& pending : window_) {
      if (pending->sent && !pending->answered &&
          IsTooLarge(status, pending->bytes())) {
        return pending.get();
      }
    }
    return nullptr;
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
    answered_ = false;
    absl::Status status = FromGrpc(end, 0);
    if (Pending* large = FindTooLarge(status); large != nullptr) {
      Heard();
      SplitRequest(large, NameTooLarge(status, large->cut, large->bytes()));
      return absl::OkStatus();
    }
    if (status.ok()) {
      status = absl::UnavailableError("the server ended the stream early");
    } else if (absl::IsCancelled(status)) {
      status = absl::UnavailableError("the server reset the stream");
    }
    if (!WorthAnotherTry(status) && !absl::IsInternal(status)) return status;
    trouble_ = status;
    connect_at_ = SteadyNow() + ReopenPause(status, pause_);
    pause_ = std::min(kBackoffMultiplier * pause_, kLongestBackoff);
    return absl::OkStatus();
  }

  v1::Encoder::Stub* const stub_;
  InputCutter cutter_;
  const BulkOptions& options_;
  const std::function<absl::Status(const BulkAnswer&)>& sink_;
  v1::EmbedRequest blank_;
  SameModel model_;
  std::deque<std::unique_ptr<Pending>> window_;  // in the list's order
  std::unique_ptr<BulkStream> stream_;
  Patience patience_;
  bool answered_ = false;  // by this stream
  int64_t made_ = 0;       // requests; the next one's id
  absl::Status trouble_;   // the last error that was not final
  absl::Time connect_at_ = absl::InfinitePast();
  absl::Duration pause_ = kFirstBackoff;
};

absl::Status Check(const BulkOptions& options) {
  if (options.texts_per_call < 1 || options.bytes_per_call < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "texts_per_call is ", options.texts_per_call, " and bytes_per_call ",
        options.bytes_per_call, "; both must be at least 1"));
  }
  if (options.calls_in_flight < 1 ||
      options.calls_in_flight > kMostCallsInFlight) {
    return absl::InvalidArgumentError(
        absl::StrCat("calls_in_flight is ", options.calls_in_flight,
                     "; it must be from 1 to ", kMostCallsInFlight));
  }
  if (options.patience <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("patience is ", absl::FormatDuration(options.patience),
                     "; it must be more than 0"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Client::EmbedBulk(
    InputSource source, const EmbedOptions& embed, const BulkOptions& options,
    const std::function<absl::Status(const BulkAnswer&)>& sink) const {
  const absl::Status checked = Check(options);
  if (!checked.ok()) return checked;
  return Work(stub_.get(), channel_, std::move(source), embed, options, sink)
      .Run();
}

}  // namespace encoderd::client
