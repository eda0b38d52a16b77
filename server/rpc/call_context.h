// gRPC's context of a call, for code that may outlive it: nothing uses it after
// Over. Also has the caller. Thread-safe except for Admit, which comes first.
#ifndef ENCODERD_SERVER_RPC_CALL_CONTEXT_H_
#define ENCODERD_SERVER_RPC_CALL_CONTEXT_H_

#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpc/support/time.h"
#include "grpcpp/server_context.h"
#include "server/api/publish.h"
#include "server/base/steady_time.h"
#include "server/rpc/access.h"
#include "server/rpc/status.h"

namespace encoderd {

class CallContext {
 public:
  explicit CallContext(grpc::CallbackServerContext* context)
      : context_(context), connection_(ConnectionOf(*context)) {}

  // Whether the caller may call, as Admit of access.h. Once, before the others.
  absl::Status Admit(const Secrets* secrets) {
    auto pass = encoderd::Admit(secrets, *context_, connection_);
    if (!pass.ok()) return pass.status();
    pass_ = *std::move(pass);
    return absl::OkStatus();
  }
  const Caller& caller() const { return pass_.caller; }  // admitted
  // As CallerOf of access.h: of a call that lives longer than a token may.
  absl::StatusOr<Caller> CallerNow(const Secrets* secrets) const {
    return CallerOf(secrets, *context_, connection_);
  }
  // The call no longer counts against its token's limit. Called once, by the
  // code that ends it, before its answer is sent: the caller may call again at
  // once.
  void LeavePlace() { pass_.open_call.reset(); }
  uint64_t connection() const { return connection_; }
  // When the caller gives up, by SteadyNow: the time that is left by gRPC's
  // clock, so that a step of the wall clock since the call arrived changes
  // nothing. Not by gRPC's std::chrono time, whose nanoseconds overflow past
  // the year 2262.
  absl::Time deadline() const {
    const gpr_timespec at = context_->raw_deadline();
    if (gpr_time_cmp(at, gpr_inf_future(at.clock_type)) >= 0) {
      return absl::InfiniteFuture();
    }
    const gpr_timespec left = gpr_time_sub(at, gpr_now(at.clock_type));
    return SteadyNow() + absl::Seconds(left.tv_sec) +
           absl::Nanoseconds(left.tv_nsec);
  }
  // The trace that the caller's header names; empty: none, or several headers,
  // of which none can be trusted.
  absl::string_view traceparent() const {
    const auto [first, last] =
        context_->client_metadata().equal_range("traceparent");
    if (first == last || std::next(first) != last) return "";
    return {first->second.data(), first->second.size()};
  }

  // What the call that fails with `published` is finished with. If that is
  // RESOURCE_EXHAUSTED, a trailer tells clients with gRPC's retry policy when
  // to retry.
  grpc::Status Failure(const absl::Status& published) const {
    const auto delay = RetryDelay(published);
    if (published.code() == absl::StatusCode::kResourceExhausted && delay) {
      context_->AddTrailingMetadata(
          "grpc-retry-pushback-ms",
          absl::StrCat(absl::ToInt64Milliseconds(*delay)));
    }
    return ToGrpcStatus(published);
  }

  // Resets the call, unless it is over.
  void Cancel() {
    absl::MutexLock lock(&mu_);
    if (!over_) context_->TryCancel();
  }
  // From OnDone: the context is about to be destroyed.
  void Over() {
    absl::MutexLock lock(&mu_);
    over_ = true;
  }

 private:
  grpc::CallbackServerContext* const context_;
  const uint64_t connection_;
  AccessPass pass_;  // the caller is constant once admitted
  absl::Mutex mu_;
  bool over_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_CALL_CONTEXT_H_
