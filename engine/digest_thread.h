// The digest of a model's weights, computed on its own thread while the rest of
// the model is loaded: hashing is the longest part of loading a large model,
// and needs none of the rest.
//
// Model::Load creates one and waits for it: the thread never outlives Load.
// Used by one thread.
#ifndef ENCODERD_ENGINE_DIGEST_THREAD_H_
#define ENCODERD_ENGINE_DIGEST_THREAD_H_

#include <atomic>
#include <future>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "engine/checkpoint/checkpoint_reader.h"

namespace encoderd {

class DigestThread {
 public:
  // Starts. `checkpoint`, which may be read meanwhile, outlives it.
  explicit DigestThread(const CheckpointReader* checkpoint);
  // Stops at the next mebibyte if nobody has waited.
  ~DigestThread();
  DigestThread(const DigestThread&) = delete;
  DigestThread& operator=(const DigestThread&) = delete;

  // What CheckpointReader::Sha256 gives. Once. Where the system gave no thread,
  // it is computed now.
  absl::StatusOr<std::string> Wait();

 private:
  std::atomic<bool> stop_{false};
  std::packaged_task<absl::StatusOr<std::string>()> task_;
  std::thread thread_;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DIGEST_THREAD_H_
