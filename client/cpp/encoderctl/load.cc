#include "client/cpp/encoderctl/load.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/cpp/bulk_stream.h"
#include "client/cpp/encoderctl/arrivals.h"
#include "client/cpp/error.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/steady_time.h"

namespace encoderd::ctl {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(2);

// How long to leave a server alone that answered with `status`.
absl::Duration PauseAfter(const absl::Status& status) {
  const auto details = client::GetErrorDetails(status);
  return details.has_value() && details->retry_delay.has_value()
             ? std::min(*details->retry_delay, kLongestPause)
             : kTick;
}

// The first text of the call with this number.
int64_t FirstText(const Load& load, int64_t number) {
  return number * load.texts_per_call % static_cast<int64_t>(load.texts.size());
}

// Makes `request` the call with this number.
void FillRequest(const Load& load, int64_t number, v1::EmbedRequest* request) {
  *request = load.blank;
  const auto size = static_cast<int64_t>(load.texts.size());
  const int64_t first = FirstText(load, number);
  for (int64_t i = 0; i < load.texts_per_call; ++i) {
    request->add_inputs()->set_text(load.texts[(first + i) % size]);
  }
}

class UnaryLoad {
 public:
  UnaryLoad(v1::Encoder::Stub* stub, const Load& load,
            const MeasureLimits& limits)
      : stub_(stub),
        load_(load),
        slots_(load.concurrency),
        measure_(limits, client::SteadyNow()) {
    if (load.rate > 0) arrivals_.emplace(load.rate, client::SteadyNow());
  }

  Figures Run(const GoOn& go_on) {
    while (true) {
      for (Slot* slot : TakeDue()) Start(slot);
      int64_t texts = 0;
      double share = 0;
      {
        absl::MutexLock lock(&mu_);
        full_ = arrivals_ && running_ == load_.concurrency;
        const auto awake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
          return Awake();
        };
        awake_.Await(&mu_, awake, UntilNext(client::SteadyNow()));
        if (Over()) break;
        texts = measure_.texts();
        share = measure_.Share(client::SteadyNow());
      }
      // Not under the lock: it may write to a slow terminal.
      const absl::Time now = client::SteadyNow();
      if (now < next_tick_) continue;
      next_tick_ = now + kTick;
      if (!go_on(texts, share)) break;
    }
    absl::MutexLock lock(&mu_);
    const absl::Time now = client::SteadyNow();
    Figures figures = measure_.Close(now);
    closed_ = true;
    if (arrivals_) {
      for (; arrivals_->next() < now; arrivals_->Advance()) ++figures.not_begun;
    }
    for (Slot& slot : slots_) {
      if (slot.running) slot.context->TryCancel();
    }
    mu_.Await(absl::Condition(
        +[](int* running) { return *running == 0; }, &running_));
    return figures;
  }

 private:
  // One call at a time. What gRPC reads and writes is touched
  // by nobody else while it runs.
  struct Slot {
    std::unique_ptr<grpc::ClientContext> context;
    v1::EmbedRequest request;
    v1::EmbedResponse response;
    int64_t number = 0;
    bool running = false;
    absl::Time began;
    absl::Time due = absl::InfinitePast();  // not before
  };

  bool Over() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return measure_.Over(client::SteadyNow());
  }

  // Whether there is something to do before the time is up.
  bool Awake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return Over() || (full_ && running_ < load_.concurrency);
  }

  // How long the next call may be off, or a look at what is done.
  absl::Duration UntilNext(absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!arrivals_ || full_) return kTick;
    return std::clamp(arrivals_->next() - now, absl::ZeroDuration(), kTick);
  }

  // Marks a call of `slot` as in flight, if one may begin.
  bool Take(Slot* slot, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const absl::Time due = arrivals_ ? arrivals_->next() : slot->due;
    if (closed_ || slot->running || now < due || !measure_.Begin(now)) {
      return false;
    }
    slot->running = true;
    ++running_;
    slot->began = arrivals_ ? due : now;
    if (arrivals_) arrivals_->Advance();
    slot->number = made_++;
    slot->context = std::make_unique<grpc::ClientContext>();
    slot->context->set_deadline(
        absl::ToChronoTime(absl::Now() + load_.timeout));
    return true;
  }

  std::vector<Slot*> TakeDue() {
    absl::MutexLock lock(&mu_);
    std::vector<Slot*> due;
    const absl::Time now = client::SteadyNow();
    for (Slot& slot : slots_) {
      if (arrivals_ && now < arrivals_->next()) break;
      if (Take(&slot, now)) due.push_back(&slot);
    }
    return due;
  }

  void Start(Slot* slot) {
    FillRequest(load_, slot->number, &slot->request);
    stub_->async()->Embed(
        slot->context.get(), &slot->request, &slot->response,
        [this, slot](const grpc::Status& status) { End(slot, status); });
  }

  void End(Slot* slot, const grpc::Status& ended) {
    const absl::Time now = client::SteadyNow();
    absl::Status status =
        client::FromGrpc(ended, FirstText(load_, slot->number));
    if (status.ok()) {
      status = client::CheckCount(slot->response.embeddings_size(),
                                  slot->request.inputs_size());
    }
    {
      absl::MutexLock lock(&mu_);
      slot->running = false;
      --running_;
      if (closed_) return;
      if (status.ok()) {
        measure_.Answered(slot->began, now, slot->request.inputs_size(),
                          slot->response.usage().tokens());
      } else {
        measure_.Failed(now, status);
        slot->due = now + PauseAfter(status);
      }
      const bool more = Take(slot, now);
      if (Awake()) awake_.NotifyAll();
      if (!more) return;
    }
    Start(slot);
  }

  v1::Encoder::Stub* const stub_;
  const Load& load_;
  absl::Mutex mu_;
  client::SteadyCondition awake_;  // Awake() may have become true
  std::vector<Slot> slots_;
  Measure measure_ ABSL_GUARDED_BY(mu_);
  std::optional<Arrivals> arrivals_ ABSL_GUARDED_BY(mu_);  // of an open loop
  absl::Time next_tick_ = absl::InfinitePast();
  int running_ ABSL_GUARDED_BY(mu_) = 0;
  bool full_ ABSL_GUARDED_BY(mu_) = false;  // an open loop, before its wait
  int64_t made_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

class StreamLoad {
 public:
  StreamLoad(v1::Encoder::Stub* stub, const Load& load,
             const MeasureLimits& limits)
      : stub_(stub), load_(load), measure_(limits, client::SteadyNow()) {}

  Figures Run(const GoOn& go_on) {
    absl::Time now = client::SteadyNow();
    while (!measure_.Over(now) &&
           go_on(measure_.texts(), measure_.Share(now))) {
      Step(now);
      now = client::SteadyNow();
    }
    Figures figures = measure_.Close(now);
    stream_.reset();  // cancels what is in flight
    return figures;
  }

 private:
  // Sends one request, or waits for what comes.
  void Step(absl::Time now) {
    if (now < not_before_ && began_.empty()) {
      absl::SleepFor(std::min(not_before_ - now, kTick));
      return;
    }
    if (stream_ == nullptr) {
      stream_ = std::make_unique<client::BulkStream>(stub_);
    }
    const bool room = now >= not_before_ &&
                      static_cast<int>(began_.size()) < load_.concurrency;
    if (room && stream_->Writable() && measure_.Begin(now)) {
      v1::EmbedRequest request;
      FillRequest(load_, made_, &request);
      request.set_request_id(absl::StrCat(made_));
      began_[made_++] = now;
      stream_->Write(std::move(request));
      return;
    }
    stream_->Wait(/*for_write=*/room && !stream_->Writable(), kTick);
    for (const v1::EmbedResponse& response : stream_->Take()) Take(response);
    if (stream_ == nullptr) return;
    if (stream_->ReadsEnded()) {
      const absl::Status status = client::FromGrpc(stream_->Close(), 0);
      for (const v1::EmbedResponse& response : stream_->Take()) Take(response);
      FailAll(status.ok()
                  ? absl::UnavailableError("the server ended the stream early")
                  : status);
    } else if (!began_.empty() &&
               client::SteadyNow() - began_.begin()->second > load_.timeout) {
      FailAll(absl::DeadlineExceededError(
          absl::StrCat("no response from the server for ",
                       absl::FormatDuration(load_.timeout))));
    }
  }

  void Take(const v1::EmbedResponse& response) {
    const absl::Time now = client::SteadyNow();
    int64_t id = -1;
    const auto found = absl::SimpleAtoi(response.request_id(), &id)
                           ? began_.find(id)
                           : began_.end();
    if (found == began_.end()) {
      FailAll(absl::InternalError(absl::StrCat("the server answered request \"",
                                               response.request_id(),
                                               "\", which is not in flight")));
      return;
    }
    const absl::Status status =
        response.has_error()
            ? client::StreamError(response.error(), FirstText(load_, id))
            : client::CheckCount(response.embeddings_size(),
                                 load_.texts_per_call);
    if (status.ok()) {
      measure_.Answered(found->second, now, load_.texts_per_call,
                        response.usage().tokens());
    } else {
      Fail(now, status);
    }
    began_.erase(found);
  }

  void Fail(absl::Time now, const absl::Status& status) {
    measure_.Failed(now, status);
    not_before_ = now + PauseAfter(status);
  }

  // The stream is of no more use.
  void FailAll(const absl::Status& status) {
    const absl::Time now = client::SteadyNow();
    for (size_t i = 0; i < began_.size(); ++i) Fail(now, status);
    not_before_ = now + PauseAfter(status);
    began_.clear();
    stream_.reset();
  }

  v1::Encoder::Stub* const stub_;
  const Load& load_;
  Measure measure_;
  std::unique_ptr<client::BulkStream> stream_;
  std::map<int64_t, absl::Time> began_;  // of requests in flight
  int64_t made_ = 0;
  absl::Time not_before_ = absl::InfinitePast();
};

}  // namespace

Figures RunLoad(v1::Encoder::Stub* stub, const Load& load,
                const MeasureLimits& limits, const GoOn& go_on) {
  if (load.stream) return StreamLoad(stub, load, limits).Run(go_on);
  return UnaryLoad(stub, load, limits).Run(go_on);
}

}  // namespace encoderd::ctl
