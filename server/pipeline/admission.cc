#include "server/pipeline/admission.h"

#include <algorithm>
#include <utility>

#include "server/pipeline/errors.h"

namespace encoderd {

Permit& Permit::operator=(Permit&& other) noexcept {
  if (this == &other) return *this;
  Release();
  admission_ = std::exchange(other.admission_, nullptr);
  tokens_ = std::exchange(other.tokens_, 0);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

absl::Status Permit::Settle(int64_t tokens) {
  absl::Status status = admission_->Exchange(tokens_, tokens, bytes_, 0);
  if (!status.ok()) return status;
  tokens_ = tokens;
  bytes_ = 0;
  return absl::OkStatus();
}

void Permit::Release() {
  if (admission_ == nullptr) return;
  // Giving back always fits.
  admission_->Exchange(tokens_, 0, bytes_, 0).IgnoreError();
  admission_ = nullptr;
  tokens_ = bytes_ = 0;
}

absl::StatusOr<Permit> Admission::Admit(int64_t tokens, bool estimated,
                                        int64_t bytes) {
  if (estimated) tokens = std::min(tokens, max_tokens_);
  absl::Status status = Exchange(0, tokens, 0, bytes);
  if (!status.ok()) return status;
  Permit permit;
  permit.admission_ = this;
  permit.tokens_ = tokens;
  permit.bytes_ = bytes;
  return permit;
}

absl::Status Admission::Exchange(int64_t old_tokens, int64_t new_tokens,
                                 int64_t old_bytes, int64_t new_bytes) {
  if (new_tokens > max_tokens_) {
    return RequestTooLargeError("tokens", new_tokens, max_tokens_);
  }
  if (new_bytes > max_bytes_) {
    return RequestTooLargeError("bytes", new_bytes, max_bytes_);
  }
  int64_t others_tokens = 0;
  int64_t others_bytes = 0;
  {
    MutexLock lock(&mutex_);
    others_tokens = tokens_ - old_tokens;
    others_bytes = bytes_ - old_bytes;
    // What shrinks always fits, whatever the others hold.
    const bool tokens_fit =
        new_tokens <= old_tokens || others_tokens + new_tokens <= max_tokens_;
    const bool bytes_fit =
        new_bytes <= old_bytes || others_bytes + new_bytes <= max_bytes_;
    if (tokens_fit && bytes_fit) {
      tokens_ = others_tokens + new_tokens;
      bytes_ = others_bytes + new_bytes;
      return absl::OkStatus();
    }
    if (tokens_fit) new_tokens = 0;  // the bytes are to blame
  }
  return new_tokens > 0
             ? QueueFullError("tokens", others_tokens, new_tokens, max_tokens_)
             : QueueFullError("bytes", others_bytes, new_bytes, max_bytes_);
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
