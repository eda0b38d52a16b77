#include "server/rpc/grpc_log.h"

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpc/support/log.h"
#include "server/observe/log.h"

namespace encoderd {
namespace {

constexpr size_t kMaxMessage = 512;  // bytes

absl::Mutex g_mu(absl::kConstInit);
LogLimit g_limit ABSL_GUARDED_BY(g_mu){20, absl::Milliseconds(500)};
int64_t g_left_out ABSL_GUARDED_BY(g_mu) = 0;

// gRPC calls an error what a caller did wrong, too: none of it is ours.
LogLevel LevelOf(gpr_log_severity severity) {
  return severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning
                                            : LogLevel::kInfo;
}

void WriteLine(gpr_log_func_args* args) {
  int64_t left_out = 0;
  {
    absl::MutexLock lock(&g_mu);
    if (!g_limit.Allows(absl::Now())) {
      ++g_left_out;
      return;
    }
    left_out = g_left_out;
    g_left_out = 0;
  }
  absl::string_view file = args->file;
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  LogFields fields;
  fields.Add("at", absl::StrCat(file, ":", args->line))
      .Add("message", absl::string_view(args->message).substr(0, kMaxMessage));
  if (left_out > 0) fields.Add("left_out", left_out);
  Log(LevelOf(args->severity), "grpc", fields);
}

}  // namespace

void TakeGrpcLog() { gpr_set_log_function(&WriteLine); }

}  // namespace encoderd
