#include "server/rpc/access.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/base/const_init.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "engine/base/error.h"
#include "server/base/log.h"
#include "server/base/steady_time.h"
#include "server/pipeline/reasons.h"

namespace encoderd {
namespace {

constexpr absl::string_view kScheme = "Bearer ";

absl::Status MissingError() {
  return MakeError(absl::StatusCode::kUnauthenticated,
                   "the call has no bearer token: send the metadata "
                   "'authorization: Bearer TOKEN'",
                   {reason::kBearerTokenMissing, {}, ""});
}

absl::Status UnknownError() {
  return MakeError(absl::StatusCode::kUnauthenticated,
                   "the call's bearer token is unknown to this server: "
                   "--bearer_token_file must have its SHA-256, hashed without "
                   "a newline at its end",
                   {reason::kBearerTokenUnknown, {}, ""});
}

absl::Status SeveralError() {
  return MakeError(absl::StatusCode::kUnauthenticated,
                   "the call has several values of the metadata "
                   "'authorization': send one",
                   {reason::kBearerTokenUnknown, {}, ""});
}

constexpr char kHeader[] = "authorization";

// Of a call with one header at most; empty: none.
absl::string_view TokenOf(const grpc::ServerContextBase& context) {
  const auto& metadata = context.client_metadata();
  const auto at = metadata.find(kHeader);
  if (at == metadata.end()) return "";
  const absl::string_view value(at->second.data(), at->second.size());
  if (!absl::StartsWithIgnoreCase(value, kScheme)) return "";
  return absl::StripAsciiWhitespace(value.substr(kScheme.size()));
}

// A caller that sends the content of the file reveals the operator's mistake.
void WarnOfClearText(const TokenTable& tokens, absl::string_view token) {
  static absl::Mutex mu(absl::kConstInit);
  static LogLimit limit{1, absl::Minutes(1)};
  const TokenHolder* const holder = tokens.FindInClear(token);
  if (holder == nullptr) return;
  {
    absl::MutexLock lock(&mu);
    if (!limit.Allows(SteadyNow())) return;
  }
  Log(LogLevel::kWarning, "token_in_clear",
      LogFields()
          .Add("name", holder->name())
          .Add("message",
               "--bearer_token_file has this token instead of its SHA-256, so "
               "its callers are rejected; replace it with the SHA-256"));
}

absl::StatusOr<const TokenHolder*> Find(
    const TokenTable& tokens, const grpc::ServerContextBase& context) {
  // Which of them counts is not to be chosen by who sends them.
  if (context.client_metadata().count(kHeader) > 1) return SeveralError();
  const absl::string_view token = TokenOf(context);
  if (token.empty()) return MissingError();
  const TokenHolder* const holder = tokens.Find(token);
  if (holder != nullptr) return holder;
  WarnOfClearText(tokens, token);
  return UnknownError();
}

std::shared_ptr<const TokenTable> TokensOf(const Secrets* secrets) {
  return secrets == nullptr ? nullptr : secrets->tokens();
}

}  // namespace

uint64_t ConnectionOf(const grpc::ServerContextBase& context) {
  return std::hash<std::string>()(context.peer());
}

absl::StatusOr<AccessPass> Admit(const Secrets* secrets,
                                 const grpc::ServerContextBase& context,
                                 uint64_t connection) {
  const auto tokens = TokensOf(secrets);
  if (tokens == nullptr) return AccessPass{Caller{connection}, {}};
  const auto holder = Find(*tokens, context);
  if (!holder.ok()) return holder.status();
  auto open = (*holder)->OpenCall();
  if (!open.ok()) return open.status();
  return AccessPass{(*holder)->caller(), *std::move(open)};
}

absl::StatusOr<Caller> CallerOf(const Secrets* secrets,
                                const grpc::ServerContextBase& context,
                                uint64_t connection) {
  const auto tokens = TokensOf(secrets);
  if (tokens == nullptr) return Caller{connection};
  const auto holder = Find(*tokens, context);
  if (!holder.ok()) return holder.status();
  return (*holder)->caller();
}

}  // namespace encoderd
