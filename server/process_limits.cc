#include "server/process_limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "engine/base/start_thread.h"

namespace encoderd {
namespace {

// gRPC 1.51 aborts with fewer than some fifteen.
constexpr rlim_t kLeastDescriptors = 32;

absl::Status CheckDescriptors() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
      limit.rlim_cur >= kLeastDescriptors) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("this process may open ", limit.rlim_cur,
                   " files; the server needs at "
                   "least ",
                   kLeastDescriptors,
                   ": raise the limit (ulimit -n, LimitNOFILE="
                   ", --ulimit nofile=)"));
}

}  // namespace

int32_t LeastThreads(const ServerConfig& config, int32_t cores) {
  constexpr int32_t kOurs = 5;     // load, digest, drain, accept, http
  constexpr int32_t kOfGrpc = 12;  // timers, executors, what polls
  // A quota may leave fewer than the host has; the model's device knows.
  const int32_t sure = std::clamp(cores, 1, 2);
  const int32_t sessions = config.threads > 0 ? config.threads : sure;
  const auto models = static_cast<int32_t>(config.models.size());
  return kOurs + kOfGrpc + sure - 1 +
         models * (sessions + config.tokenizer_threads + 1);
}

absl::Status CheckThreads(int32_t count) {
  absl::Notification done;
  std::vector<std::thread> threads;
  absl::Status status;
  while (status.ok() && static_cast<int32_t>(threads.size()) < count) {
    try {
      threads.push_back(
          StartThread("start", [&done] { done.WaitForNotification(); }));
    } catch (const std::system_error& error) {
      status = absl::ResourceExhaustedError(absl::StrCat(
          "this process can start ", threads.size(),
          " threads more; the "
          "server needs at least ",
          count, " (", error.code().message(),
          "): raise the limit on tasks (TasksMax=, --pids-limit, podPidsLimit, "
          "ulimit -u) or on memory (ulimit -v)"));
    }
  }
  done.Notify();
  for (std::thread& thread : threads) thread.join();
  return status;
}

absl::Status CheckProcessLimits(const ServerConfig& config) {
  const absl::Status status = CheckDescriptors();
  if (!status.ok()) return status;
  return CheckThreads(LeastThreads(
      config, static_cast<int32_t>(std::thread::hardware_concurrency())));
}

}  // namespace encoderd
