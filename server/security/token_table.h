// Who may call, by bearer token (RFC 6750), and the limits of each. The file
// has the SHA-256 of each token, 64 hex digits: reading it does not allow a
// call, as long as tokens are random.
//
//   # name   hash              limits
//   search   9f86d081...0f00a08
//   crawler  60303ae2...c11c752  max_calls=8 max_queue_tokens=65536
#ifndef ENCODERD_SERVER_SECURITY_TOKEN_TABLE_H_
#define ENCODERD_SERVER_SECURITY_TOKEN_TABLE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/pipeline/request.h"

namespace encoderd {

inline constexpr size_t kMaxTokens = 1024;
inline constexpr size_t kMaxTokenBytes =
    4096;  // of a token that a caller sends

// One line of the file. Thread-safe.
class TokenHolder {
 public:
  // `hash`: 32 bytes. `calls`: its open calls, which stay counted when the file
  // is reloaded.
  TokenHolder(std::string name, std::string hash, int64_t max_calls,
              int64_t max_queue_tokens,
              std::shared_ptr<std::atomic<int64_t>> calls);

  const std::string& name() const { return name_; }
  // For fair shares and limits in the pipeline.
  const Caller& caller() const { return caller_; }

  // Counts a call as open until the result is destroyed, which may outlive the
  // holder. RESOURCE_EXHAUSTED, QUEUE_FULL (queued_calls, limit): it has
  // as many as it may have.
  absl::StatusOr<std::shared_ptr<void>> OpenCall() const;

 private:
  friend class TokenTable;

  const std::string name_;
  const std::string hash_;
  const int64_t max_calls_;
  const Caller caller_;
  const std::shared_ptr<std::atomic<int64_t>> calls_;
};

// Constant. Thread-safe.
class TokenTable {
 public:
  // `before`, from the same file, may be null: open calls of its holders stay
  // counted under their names. INVALID_ARGUMENT "line N: why", without the
  // content of the line.
  static absl::StatusOr<std::shared_ptr<const TokenTable>> Parse(
      absl::string_view text, const TokenTable* before);

  // The holder of `token`, or null. Takes the same time in both cases.
  const TokenHolder* Find(absl::string_view token) const;

  // The holder whose hash equals `token`: the file then has the token itself
  // instead of its hash. Null: none. Such a token is not accepted.
  const TokenHolder* FindInClear(absl::string_view token) const;

  // The first of the holders with the lowest limit of queue tokens, which may
  // be none. Null: there are no holders.
  const TokenHolder* LeastQueueTokens() const;

  size_t size() const { return holders_.size(); }

 private:
  absl::Status Add(std::string name, std::string hash, int64_t max_calls,
                   int64_t max_queue_tokens);

  // For names that are, or were, in the file: open calls are still counted when
  // a name returns.
  std::map<std::string, std::weak_ptr<std::atomic<int64_t>>> calls_;
  std::vector<std::unique_ptr<TokenHolder>> holders_;
};

std::string Describe(const TokenTable& tokens);  // "2 tokens", for the log

}  // namespace encoderd

#endif  // ENCODERD_SERVER_SECURITY_TOKEN_TABLE_H_
