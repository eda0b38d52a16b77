#include "server/pipeline/admission.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "server/pipeline/errors.h"

namespace encoderd {

Permit& Permit::operator=(Permit&& other) noexcept {
  if (this == &other) return *this;
  Release();
  admission_ = std::exchange(other.admission_, nullptr);
  caller_ = other.caller_;
  tokens_ = std::exchange(other.tokens_, 0);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

absl::Status Permit::Settle(int64_t tokens) {
  absl::Status status = admission_->Exchange(*this, tokens, 0);
  if (!status.ok()) return status;
  tokens_ = tokens;
  bytes_ = 0;
  return absl::OkStatus();
}

void Permit::Release() {
  if (admission_ == nullptr) return;
  // Returning always fits.
  admission_->Exchange(*this, 0, 0).IgnoreError();
  admission_ = nullptr;
  tokens_ = bytes_ = 0;
}

absl::StatusOr<Permit> Admission::Admit(int64_t tokens, bool estimated,
                                        int64_t bytes, const Caller& caller) {
  if (estimated) {
    tokens = std::min({tokens, max_tokens_, caller.max_queue_tokens});
  }
  Permit permit;
  permit.caller_ = caller;
  absl::Status status = Exchange(permit, tokens, bytes);
  if (!status.ok()) return status;
  permit.admission_ = this;
  permit.tokens_ = tokens;
  permit.bytes_ = bytes;
  return permit;
}

absl::Status Admission::Exchange(const Permit& held, int64_t new_tokens,
                                 int64_t new_bytes) {
  const int64_t own_limit = held.caller_.max_queue_tokens;
  if (new_tokens > max_tokens_) {
    return RequestTooLargeError(QueueUnit::kTokens, new_tokens, max_tokens_,
                                "the queue (--max_queue_tokens) holds at most");
  }
  if (new_tokens > own_limit) {
    return RequestTooLargeError(QueueUnit::kTokens, new_tokens, own_limit,
                                "this caller's max_queue_tokens is");
  }
  if (new_bytes > max_bytes_) {
    return RequestTooLargeError(QueueUnit::kBytes, new_bytes, max_bytes_);
  }
  int64_t others_tokens = 0;
  int64_t others_bytes = 0;
  int64_t own_tokens = 0;
  bool tokens_fit = false;
  bool bytes_fit = false;
  {
    MutexLock lock(&mutex_);
    others_tokens = tokens_ - held.tokens_;
    others_bytes = bytes_ - held.bytes_;
    own_tokens = OthersOf(held);
    // A smaller amount always fits, whatever the others hold.
    const bool shrinks = new_tokens <= held.tokens_;
    const bool own_fit = shrinks || own_tokens + new_tokens <= own_limit;
    tokens_fit = shrinks || others_tokens + new_tokens <= max_tokens_;
    bytes_fit =
        new_bytes <= held.bytes_ || others_bytes + new_bytes <= max_bytes_;
    if (own_fit && tokens_fit && bytes_fit) {
      SetTokensOf(held.caller_, own_tokens + new_tokens);  // may throw
      tokens_ = others_tokens + new_tokens;
      bytes_ = others_bytes + new_bytes;
      return absl::OkStatus();
    }
  }
  if (!tokens_fit) {
    return QueueFullError(QueueUnit::kTokens, others_tokens, new_tokens,
                          max_tokens_, "--max_queue_tokens");
  }
  if (!bytes_fit) {
    return QueueFullError(QueueUnit::kBytes, others_bytes, new_bytes,
                          max_bytes_);
  }
  return CallerFullError(QueueUnit::kTokens, own_tokens, new_tokens, own_limit,
                         "its token's max_queue_tokens");
}

int64_t Admission::OthersOf(const Permit& held) const {
  const auto at = tokens_of_.find(held.caller_.id);
  return at == tokens_of_.end() ? 0 : at->second - held.tokens_;
}

void Admission::SetTokensOf(const Caller& caller, int64_t tokens) {
  if (caller.max_queue_tokens == std::numeric_limits<int64_t>::max()) return;
  if (tokens > 0) {
    tokens_of_[caller.id] = tokens;
  } else {
    tokens_of_.erase(caller.id);
  }
}

int64_t Admission::tokens() const {
  MutexLock lock(&mutex_);
  return tokens_;
}

int64_t Admission::bytes() const {
  MutexLock lock(&mutex_);
  return bytes_;
}

}  // namespace encoderd
