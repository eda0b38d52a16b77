// The metrics of the whole server and of its process: sampled before each
// scrape. One table has their names and help (server_metrics.cc).
#ifndef ENCODERD_SERVER_OBSERVE_SERVER_METRICS_H_
#define ENCODERD_SERVER_OBSERVE_SERVER_METRICS_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "server/observe/labels.h"
#include "server/observe/process.h"
#include "server/security/watched.h"
#include "server/trace/tracer.h"

namespace encoderd {

// What the whole server has at a scrape.
struct ServerFigures {
  ServerState state = ServerState::kLoading;
  int64_t connections = 0;
  int64_t connections_limit = 0;
  int64_t streams = 0;
  int64_t unread_answer_bytes = 0;
  // Since the process started.
  int64_t unread_answers_cut = 0;
  int64_t connections_refused = 0;
  int64_t log_lines_lost = 0;
  std::array<int64_t, kNumTlsFaults> handshakes_failed = {};
  // 1970: there is none.
  absl::Time certificate_expires = absl::UnixEpoch();
  absl::Time client_ca_expires = absl::UnixEpoch();
  ReloadFigures certificate_reloads;
  ReloadFigures token_reloads;
  TraceFigures traces;
};

// Thread-safe.
class ServerMetrics {
 public:
  // revision: the commit of the sources. The registry outlives it.
  ServerMetrics(const std::string& revision, prometheus::Registry& registry);

  void Sample(const ServerFigures& figures);
  void Sample(const ProcessFigures& figures);

 private:
  // For files that are reloaded.
  struct Reloads {
    prometheus::Counter* good;
    prometheus::Counter* failed;
    prometheus::Gauge* failing;
  };
  static Reloads AddReloads(const std::string& what,
                            prometheus::Registry& registry);
  static void Sample(const ReloadFigures& figures, const Reloads& reloads);

  // Handles: owned by the registry.
  prometheus::Gauge* connections_;
  prometheus::Gauge* connections_limit_;
  prometheus::Gauge* unread_answer_bytes_;
  prometheus::Counter* unread_answers_cut_;
  prometheus::Counter* connections_refused_;
  prometheus::Counter* log_lines_lost_;
  prometheus::Gauge* streams_;
  std::array<prometheus::Gauge*, kNumServerStates> state_;
  prometheus::Counter* cpu_seconds_;
  prometheus::Gauge* resident_bytes_;
  prometheus::Gauge* virtual_bytes_;
  prometheus::Gauge* open_fds_;
  prometheus::Gauge* max_fds_;
  prometheus::Gauge* start_time_;
  prometheus::Gauge* threads_;
  std::array<prometheus::Counter*, kNumTlsFaults> handshakes_failed_;
  prometheus::Gauge* certificate_expires_;
  prometheus::Gauge* client_ca_expires_;
  prometheus::Counter* spans_exported_;
  prometheus::Counter* spans_dropped_;
  prometheus::Counter* spans_failed_;
  Reloads certificate_reloads_;
  Reloads token_reloads_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_OBSERVE_SERVER_METRICS_H_
