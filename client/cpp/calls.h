// Many calls of one list: a bounded number in flight, answers in order. Those
// that a server refuses while it loads or is full are made again, as are long
// ones, which gRPC does not retry. Those with too many inputs are made again as
// smaller ones.
// Internal to the library. One list belongs to one thread; gRPC's own threads
// run the calls.
#ifndef ENCODERD_CLIENT_CPP_CALLS_H_
#define ENCODERD_CLIENT_CPP_CALLS_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cpp/client_settings.h"
#include "client/cpp/error.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/inputs.h"
#include "client/cpp/retry.h"
#include "client/cpp/steady_time.h"

namespace encoderd::client {

// One call, from request to answer. Stays where it is until `done`, which is
// null until it has begun.
template <typename Request, typename Response>
struct Call {
  std::unique_ptr<grpc::ClientContext> context;  // of the last attempt
  Request request;
  Response response;
  grpc::Status status;
  std::unique_ptr<SteadyNotification> done;  // of the last attempt
  absl::Time deadline;                       // of all attempts
  int attempts = 0;      // since the server last named a pause
  absl::Status passing;  // why the attempt before was refused
  Cut cut;               // which inputs of the caller's list it is about
  absl::Time due = absl::InfiniteFuture();  // once refused: the next attempt
  bool awaits_return = false;  // the next attempt waits for a connection
  bool final = false;          // there is no next attempt

  bool Ended() const { return done != nullptr && done->HasBeenNotified(); }
  absl::Status Result() const {
    return AfterRetries(FromGrpc(status, cut.first_input), passing);
  }
};

// How a list's calls are sent.
struct CallOptions {
  int max_in_flight = 1;
  absl::Duration timeout;             // for all attempts of a call
  const std::function<bool()>& stop;  // see ClientOptions
  // A call that is too large as a message is made again as two; of one input it
  // costs that input its own place only: `finish` gets a Cut with the error,
  // and an empty response.
  bool per_input = false;
  // Whether `make` has its next input without waiting. Null: always.
  std::function<bool()> ready = nullptr;
  // See ClientOptions; the list's answers must tell one model from another.
  std::function<bool(const absl::Status&)> await_return = nullptr;
  // Told after a refusal (TOO_MANY_INPUTS) how many inputs later calls of
  // `make` may have. Null: nobody.
  std::function<void(int64_t inputs)> take_fewer = nullptr;
  // Told how many bytes, after a call that was made again as two. Null: nobody.
  std::function<void(int64_t bytes)> take_smaller = nullptr;
  // gRPC itself sends a longer request once (RetryBufferBytes).
  int64_t retry_buffer_bytes = settings::kRetryBufferBytes;
};

inline constexpr absl::Duration kTick = absl::Milliseconds(100);  // asks stop
inline constexpr absl::Duration kInputTick = absl::Milliseconds(5);  // ready

inline bool Stopped(const std::function<bool()>& stop) {
  return stop != nullptr && stop();
}

// Sleeps; false: it was stopped.
[[nodiscard]] inline bool SleepUnlessStopped(
    absl::Duration pause, const std::function<bool()>& stop) {
  for (; pause > absl::ZeroDuration(); pause -= kTick) {
    if (Stopped(stop)) return false;
    absl::SleepFor(std::min(pause, kTick));
  }
  return true;
}

// One run of RunCalls, which says what `make`, `start` and `finish` do: the
// calls that are in flight or not yet finished, in order.
template <typename Request, typename Response>
class CallWindow {
 public:
  using OneCall = Call<Request, Response>;

  CallWindow(const CallOptions& options, absl::FunctionRef<Cut(Request*)> make,
             absl::FunctionRef<void(OneCall*)> start,
             absl::FunctionRef<absl::Status(const OneCall&)> finish)
      : options_(options), make_(make), start_(start), finish_(finish) {}
  CallWindow(const CallWindow&) = delete;
  CallWindow& operator=(const CallWindow&) = delete;

  // Also where `make` or `finish` throws: gRPC writes into calls in flight.
  ~CallWindow() {
    for (const auto& call : window_) {
      if (call->context != nullptr) call->context->TryCancel();
    }
    for (const auto& call : window_) {
      if (call->done != nullptr) call->done->WaitForNotification();
    }
  }

  absl::Status Run() {
    absl::Status result;
    while (result.ok()) {
      Fill();
      if (window_.empty()) break;
      AwaitFront();
      if (Stopped(options_.stop)) return absl::CancelledError("stopped");
      if (window_.front()->final) result = FinishFront();
    }
    return result;
  }

 private:
  void Attempt(OneCall* call) {
    auto context = NewContext(call->deadline);
    if (call->awaits_return) context->set_wait_for_ready(true);
    call->done = std::make_unique<SteadyNotification>();
    call->context = std::move(context);
    ++call->attempts;
    try {
      start_(call);
    } catch (...) {
      call->done.reset();  // nobody will notify it
      throw;
    }
  }

  void Begin(OneCall* call) {
    call->deadline = SteadyNow() + options_.timeout;
    if (!call->request.inputs().empty()) return Attempt(call);
    call->done = std::make_unique<SteadyNotification>();
    call->done->Notify();
    call->final = true;
  }

  // While the front waits to be sent again, nothing begins.
  bool FrontWaits() const {
    return !window_.empty() && window_.front()->due != absl::InfiniteFuture();
  }

  // The first part (SplitFront) whose turn has come to begin; null: none.
  OneCall* NextPart() const {
    if (FrontWaits()) return nullptr;
    const size_t next =
        std::min<size_t>(options_.max_in_flight, window_.size());
    for (size_t i = 0; i < next; ++i) {
      if (window_[i]->done == nullptr) return window_[i].get();
    }
    return nullptr;
  }

  bool Room() const {
    return more_ && static_cast<int>(window_.size()) < options_.max_in_flight &&
           !FrontWaits();
  }

  void Fill() {
    while (OneCall* const part = NextPart()) Begin(part);
    // With nothing in flight there is nothing to do but wait for input.
    while (Room() &&
           (window_.empty() || options_.ready == nullptr || options_.ready())) {
      auto call = std::make_unique<OneCall>();
      call->cut = make_(&call->request);
      if (call->cut.sent_as.empty()) {
        more_ = false;
        break;
      }
      window_.push_back(std::move(call));
      Begin(window_.back().get());
    }
  }

  // Until the front is final, a call can begin, or it is stopped.
  void AwaitFront() {
    const OneCall& front = *window_.front();
    while (!Stopped(options_.stop)) {
      SendRefusedAgain();
      if (front.final || NextPart() != nullptr) break;
      absl::Time until = SteadyNow() + (Room() ? kInputTick : kTick);
      for (const auto& call : window_) until = std::min(until, call->due);
      if (front.Ended()) {
        absl::SleepFor(until - SteadyNow());
      } else {
        front.done->WaitForNotificationWithTimeout(until - SteadyNow());
      }
      if (Room()) break;
    }
  }

  // Notes how attempts ended, each once, and begins the next one of each call
  // whose pause is over: that of one call does not wait for another's.
  void SendRefusedAgain() {
    const auto open = [](const OneCall& call) {
      return !call.final && call.Ended();
    };
    for (const auto& call : window_) {
      if (open(*call) && call->status.ok()) answered_ = true;
    }
    for (const auto& call : window_) {
      if (!open(*call)) continue;
      const absl::Time now = SteadyNow();
      if (call->due == absl::InfiniteFuture()) {
        const absl::Status result = call->Result();
        auto pause = RetryPause(result, call->deadline);
        if (pause.has_value())
          call->attempts = 0;  // not of those that gRPC counts
        if (!pause.has_value() && !result.ok() &&
            static_cast<int64_t>(call->request.ByteSizeLong()) >
                options_.retry_buffer_bytes) {
          pause = LongRequestPause(result, call->attempts, call->deadline);
        }
        if (!pause.has_value() && options_.await_return != nullptr) {
          pause = ReturnPause(result, call->deadline);
          // Before any answer the first call decides, and others wait for that.
          if (pause && !answered_ && call != window_.front()) continue;
          if (pause && (!answered_ || !options_.await_return(result)))
            pause.reset();
          call->awaits_return = pause.has_value();
          if (call->awaits_return) call->attempts = 0;
        }
        call->final = !pause.has_value();
        if (call->final) continue;
        call->passing = result;
        call->due = now + *pause;
      }
      if (call->due > now) continue;
      call->due = absl::InfiniteFuture();
      Attempt(call.get());
    }
  }

  // The front is final: to `finish`, or in parts to the server again.
  absl::Status FinishFront() {
    OneCall& front = *window_.front();
    absl::Status result = front.Result();
    const auto inputs = static_cast<int64_t>(front.cut.sent_as.size());
    if (inputs > 1 && GetReason(result) == kTooManyInputs) {
      const int64_t fewer = FewerInputs(result, inputs);
      if (options_.take_fewer != nullptr) options_.take_fewer(fewer);
      SplitFront(fewer);
      return absl::OkStatus();
    }
    const auto bytes = static_cast<int64_t>(front.request.ByteSizeLong());
    if (IsTooLarge(result, bytes)) {
      if (options_.per_input && inputs > 1) {
        if (options_.take_smaller != nullptr) options_.take_smaller(bytes / 2);
        SplitFront((inputs + 1) / 2);
        return absl::OkStatus();
      }
      result = NameTooLarge(result, front.cut, bytes);
    }
    result = WithInput(result, front.cut);
    if (options_.per_input && front.cut.sent_as.size() == 1 &&
        GetReason(result) == kRequestTooLarge) {
      front.cut = {front.cut.first_input, {-1}, {result}};
      result = absl::OkStatus();
    }
    if (result.ok()) result = finish_(front);
    window_.pop_front();
    return result;
  }

  // Replaces the front by calls of at most `most` inputs, which Fill begins.
  void SplitFront(int64_t most) {
    const std::unique_ptr<OneCall> whole = std::move(window_.front());
    window_.pop_front();
    auto parts = Split(whole->cut, std::move(whole->request), most);
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      window_.push_front(std::make_unique<OneCall>());
      window_.front()->cut = std::move(part->first);
      window_.front()->request = std::move(part->second);
    }
  }

  const CallOptions& options_;
  const absl::FunctionRef<Cut(Request*)> make_;
  const absl::FunctionRef<void(OneCall*)> start_;
  const absl::FunctionRef<absl::Status(const OneCall&)> finish_;
  std::deque<std::unique_ptr<OneCall>> window_;
  bool more_ = true;       // `make` has not come to the end of the list
  bool answered_ = false;  // any call of the list was
};

// Starts calls while fewer than `max_in_flight` are unfinished, and hands
// finished ones to `finish` in the order in which they were made.
//   make:   fills call.request.inputs; a Cut of none: the list is at its end
//   start:  begins an attempt of the call; its end notifies call.done
//   finish: takes the answer
// A call none of whose inputs can be sent is not made, and finished in its
// turn. One with more inputs than the server takes (FewerInputs), or that is
// too large (CallOptions::per_input), is made again as smaller ones when its
// turn comes, each with the whole timeout; a few calls more than max_in_flight
// may then be in flight. The first error in the list's order, of a call or
// finish, is returned; all calls still in flight are then cancelled and waited
// for. What came before it has been finished. CANCELLED if it was stopped.
template <typename Request, typename Response>
absl::Status RunCalls(
    const CallOptions& options, absl::FunctionRef<Cut(Request*)> make,
    absl::FunctionRef<void(Call<Request, Response>*)> start,
    absl::FunctionRef<absl::Status(const Call<Request, Response>&)> finish) {
  return CallWindow<Request, Response>(options, make, start, finish).Run();
}

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_CALLS_H_
