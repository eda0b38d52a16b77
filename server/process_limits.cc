#include "server/process_limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "engine/base/start_thread.h"

namespace encoderd {
namespace {

// gRPC 1.51 aborts with fewer than some fifteen; the others are for files,
// ports and the first connections.
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

absl::Status TooFewThreads(size_t started, int32_t count,
                           const std::string& cause) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "this process can start only ", started,
      " more threads; the server "
      "needs at least ",
      count, " (", cause,
      "): raise the limit on tasks (TasksMax=, --pids-limit, podPidsLimit, "
      "ulimit -u) or on memory (ulimit -v)"));
}

}  // namespace

int32_t LeastThreads(const ServerConfig& config, int32_t cores) {
  // load, digest, drain, accept, http
  const int32_t ours = config.http_listen.empty() ? 4 : 5;
  constexpr int32_t kOfGrpc = 12;  // timers, executors, what polls
  // A quota may leave fewer than the host has; the model's device knows.
  const int32_t sure = std::clamp(cores, 1, 2);
  const int32_t sessions = config.threads > 0 ? config.threads : sure;
  const auto models = static_cast<int32_t>(config.models.size());
  return ours + kOfGrpc + sure - 1 +
         models * (sessions + config.tokenizer_threads + 1);
}

absl::Status CheckThreads(int32_t count) {
  absl::Notification done;
  std::vector<std::thread> threads;
  threads.reserve(count);  // nothing may throw while some wait
  absl::Status status;
  while (status.ok() && static_cast<int32_t>(threads.size()) < count) {
    try {
      threads.push_back(
          StartThread("start", [&done] { done.WaitForNotification(); }));
    } catch (const std::system_error& error) {
      status = TooFewThreads(threads.size(), count, error.code().message());
    } catch (const std::bad_alloc&) {
      status = TooFewThreads(threads.size(), count, "no memory");
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
