#include "server/rpc/grpc_log.h"

#include <array>
#include <atomic>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpc/support/log.h"
#include "server/base/log.h"
#include "server/base/steady_time.h"

namespace encoderd {
namespace {

constexpr size_t kMaxMessage = 512;  // bytes

CountingLogLimit g_limit(20, absl::Milliseconds(500));

// gRPC also reports callers' mistakes as errors: none of them is the server's.
LogLevel LevelOf(gpr_log_severity severity) {
  return severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning
                                            : LogLevel::kInfo;
}

// The start of the line that gRPC 1.51 logs about a failed TLS handshake; it
// reports it nowhere else. OpenSSL's message follows.
constexpr absl::string_view kHandshakeFailed = "Handshake failed";
constexpr struct {
  absl::string_view words;
  TlsFault fault;
} kFaults[] = {
    {"did not return a certificate", TlsFault::kNoCertificate},
    {"certificate verify failed", TlsFault::kCertificateRefused},
    {"alert", TlsFault::kRefusedByClient},
    {"unsupported protocol", TlsFault::kOldProtocol},
    {"wrong version number", TlsFault::kNotTls},
    {"http request", TlsFault::kNotTls},
};

std::array<std::atomic<int64_t>, kNumTlsFaults> g_handshakes_failed{};

void WriteLine(gpr_log_func_args* args) {
  const auto fault = TlsFaultOf(args->message);
  if (fault.has_value()) ++g_handshakes_failed[static_cast<int>(*fault)];
  const std::optional<int64_t> left_out = g_limit.Allows(SteadyNow());
  if (!left_out.has_value()) return;
  absl::string_view file = args->file;
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  Log(LevelOf(args->severity), "grpc",
      LogFields()
          .Add("at", absl::StrCat(file, ":", args->line))
          .Add("message",
               absl::string_view(args->message).substr(0, kMaxMessage))
          .AddLeftOut(*left_out));
}

}  // namespace

std::optional<TlsFault> TlsFaultOf(absl::string_view message) {
  if (!absl::StartsWith(message, kHandshakeFailed)) return std::nullopt;
  for (const auto& [words, fault] : kFaults) {
    if (absl::StrContains(message, words)) return fault;
  }
  return TlsFault::kOther;
}

std::array<int64_t, kNumTlsFaults> TlsHandshakesFailed() {
  std::array<int64_t, kNumTlsFaults> failed = {};
  for (int fault = 0; fault < kNumTlsFaults; ++fault) {
    failed[fault] = g_handshakes_failed[fault];
  }
  return failed;
}

void TakeGrpcLog() { gpr_set_log_function(&WriteLine); }

}  // namespace encoderd
