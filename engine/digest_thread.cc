#include "engine/digest_thread.h"

#include <system_error>

#include "engine/base/start_thread.h"

namespace encoderd {

DigestThread::DigestThread(const CheckpointReader* checkpoint)
    : task_([this, checkpoint] { return checkpoint->Sha256(&stop_); }) {
  try {
    thread_ = StartThread("digest", [this] { task_(); });
  } catch (const std::system_error&) {
    // Wait computes it.
  }
}

DigestThread::~DigestThread() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<std::string> DigestThread::Wait() {
  if (thread_.joinable()) {
    thread_.join();
  } else {
    task_();
  }
  return task_.get_future().get();  // throws what the thread threw
}

}  // namespace encoderd
