#include "client/cpp/bulk_stream.h"

#include <utility>

namespace encoderd::client {

BulkStream::BulkStream(v1::Encoder::Stub* stub) {
  // gRPC reopens a stream that a leaving server did not read. While nobody
  // listens, such a stream may never end unless it waits for a server.
  context_.set_wait_for_ready(true);
  stub->async()->EmbedStream(&context_, this);
  AddHold();  // writes begin outside of reactions
  StartRead(&response_);
  StartCall();
}

BulkStream::~BulkStream() {
  context_.TryCancel();
  Release();
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&done_));
}

void BulkStream::Release() {
  if (!released_) RemoveHold();
  released_ = true;
}

bool BulkStream::Writable() const {
  absl::MutexLock lock(&mu_);
  return !writing_ && !reads_ended_ && !done_;
}

void BulkStream::Write(v1::EmbedRequest request) {
  {
    absl::MutexLock lock(&mu_);
    writing_ = true;
  }
  request_ = std::move(request);
  StartWrite(&request_);
}

void BulkStream::Wait(bool for_write, absl::Duration patience) const {
  const auto ready = [this, for_write]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return !answers_.empty() || reads_ended_ || done_ ||
           (for_write && !writing_);
  };
  absl::MutexLock lock(&mu_);
  changed_.Await(&mu_, ready, patience);
}

std::vector<v1::EmbedResponse> BulkStream::Take() {
  absl::MutexLock lock(&mu_);
  return std::exchange(answers_, {});
}

bool BulkStream::ReadsEnded() const {
  absl::MutexLock lock(&mu_);
  return reads_ended_;
}

grpc::Status BulkStream::Close() {
  Release();
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&done_));
  return status_;
}

void BulkStream::Finish(absl::Duration patience) {
  StartWritesDone();
  Release();
  absl::MutexLock lock(&mu_);
  const auto done = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return done_; };
  changed_.Await(&mu_, done, patience);
}

void BulkStream::OnReadDone(bool ok) {
  {
    absl::MutexLock lock(&mu_);
    if (!ok) {
      reads_ended_ = true;
      changed_.NotifyAll();
      return;
    }
    answers_.push_back(std::move(response_));
    changed_.NotifyAll();
  }
  response_.Clear();
  StartRead(&response_);
}

void BulkStream::OnWriteDone(bool ok) {
  v1::EmbedRequest().Swap(&request_);  // it may be large
  absl::MutexLock lock(&mu_);
  writing_ = false;
  changed_.NotifyAll();
}

void BulkStream::OnDone(const grpc::Status& status) {
  absl::MutexLock lock(&mu_);
  status_ = status;
  done_ = true;
  changed_.NotifyAll();
}

}  // namespace encoderd::client
