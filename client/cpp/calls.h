// Many calls of one list: a bounded number in flight, answers in order.
// Internal to the library. One list belongs to one thread; gRPC's own threads
// run the calls.
#ifndef ENCODERD_CLIENT_CPP_CALLS_H_
#define ENCODERD_CLIENT_CPP_CALLS_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/inputs.h"

namespace encoderd::client {

// One call, from request to answer. Stays where it is until `done`.
template <typename Request, typename Response>
struct Call {
  grpc::ClientContext context;
  Request request;
  Response response;
  grpc::Status status;
  absl::Notification done;
  Cut cut;  // which inputs of the caller's list it is about
};

// Starts calls while fewer than `max_in_flight` are unfinished, and hands
// finished ones to `finish` in the order in which they were made.
//   make:   fills call.request.inputs; a Cut of none: the list is at its end
//   start:  begins the call; its end notifies call.done
//   finish: takes the answer
// A call none of whose inputs can be sent is not made, and finished in its
// turn. The first error in the list's order, of a call or finish, is returned;
// all calls still in flight are then cancelled and waited for. What came before
// it has been finished.
template <typename Request, typename Response>
absl::Status RunCalls(
    int max_in_flight, absl::FunctionRef<Cut(Request*)> make,
    absl::FunctionRef<void(Call<Request, Response>*)> start,
    absl::FunctionRef<absl::Status(const Call<Request, Response>&)> finish) {
  std::deque<std::unique_ptr<Call<Request, Response>>> window;
  bool more = true;
  absl::Status result;
  while (result.ok()) {
    while (more && static_cast<int>(window.size()) < max_in_flight) {
      auto call = std::make_unique<Call<Request, Response>>();
      call->cut = make(&call->request);
      if (call->cut.sent_as.empty()) {
        more = false;
        break;
      }
      const bool sent = !call->request.inputs().empty();
      window.push_back(std::move(call));
      if (sent) {
        start(window.back().get());
      } else {
        window.back()->done.Notify();
      }
    }
    if (window.empty()) break;
    Call<Request, Response>& front = *window.front();
    front.done.WaitForNotification();
    result = FromGrpc(front.status, front.cut.first_input);
    const auto bytes = static_cast<int64_t>(front.request.ByteSizeLong());
    if (IsTooLarge(result, bytes)) {
      result = NameTooLarge(result, front.cut, bytes);
    }
    if (result.ok()) result = finish(front);
    window.pop_front();
  }
  for (const auto& call : window) call->context.TryCancel();
  for (const auto& call : window) call->done.WaitForNotification();
  return result;
}

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_CALLS_H_
