#include "server/observe/server_metrics.h"

#include "server/base/version.h"
#include "server/observe/metric_spec.h"

namespace encoderd {
namespace {

using Spec = MetricSpec;

// The table.
constexpr Spec kConnections = {"encoderd_connections", "Open connections."};
constexpr Spec kConnectionsLimit = {
    "encoderd_connections_limit",
    "Open connections beyond which new ones wait."};
constexpr Spec kConnectionsRefused = {
    "encoderd_connections_refused_total",
    "Connections closed at once: their address had reached its limit, or only "
    "the reserve of all connections was left."};
constexpr Spec kStreams = {"encoderd_streams", "Open EmbedStreams."};
constexpr Spec kUnreadAnswerBytes = {
    "encoderd_unread_answer_bytes",
    "Bytes of answers that callers have not read."};
constexpr Spec kUnreadAnswersCut = {
    "encoderd_unread_answers_cut_total",
    "Calls reset because nobody read their answer while memory was scarce."};
constexpr Spec kLogLinesLost = {
    "encoderd_log_lines_lost_total",
    "Log lines dropped because standard error was blocked."};
constexpr Spec kHandshakesFailed = {
    "encoderd_tls_handshakes_failed_total",
    "gRPC connections that ended in a failed TLS handshake."};
constexpr Spec kCertificateExpires = {
    "encoderd_tls_certificate_expiry_timestamp_seconds",
    "When the server's certificate, and the first of the client CAs, expires, "
    "in seconds since 1970; 0 if there is none."};
constexpr Spec kReloads = {"encoderd_secret_reloads_total",
                           "Reloads of certificates or bearer tokens."};
constexpr Spec kReloadFailing = {
    "encoderd_secret_reload_failing",
    "1 while the files are invalid and the previous version is in use."};
constexpr Spec kSpans = {
    "encoderd_spans_total",
    "Spans of traced calls, by what became of them on the way to the "
    "collector."};
constexpr Spec kState = {"encoderd_state",
                         "1 for the current state of the server."};
constexpr Spec kBuildInfo = {"encoderd_build_info", "Always 1."};
// Of the process, with the names that all exporters use.
constexpr Spec kCpuSeconds = {"process_cpu_seconds_total",
                              "CPU time, user and system."};
constexpr Spec kResidentBytes = {"process_resident_memory_bytes",
                                 "Memory in RAM."};
constexpr Spec kVirtualBytes = {"process_virtual_memory_bytes",
                                "Address space."};
constexpr Spec kOpenFds = {"process_open_fds", "Open file descriptors."};
constexpr Spec kMaxFds = {"process_max_fds", "Limit on open file descriptors."};
constexpr Spec kStartTime = {
    "process_start_time_seconds",
    "When the process started, in seconds since 1970."};
constexpr Spec kThreads = {"process_threads", "Threads."};

// A counter whose value is kept elsewhere.
void CountUpTo(double value, prometheus::Counter* counter) {
  const double more = value - counter->Value();
  if (more > 0) counter->Increment(more);
}

}  // namespace

ServerMetrics::ServerMetrics(const std::string& revision,
                             prometheus::Registry& registry) {
  connections_ = Gauge(kConnections, registry);
  connections_limit_ = Gauge(kConnectionsLimit, registry);
  streams_ = Gauge(kStreams, registry);
  unread_answer_bytes_ = Gauge(kUnreadAnswerBytes, registry);
  unread_answers_cut_ = Counter(kUnreadAnswersCut, registry);
  connections_refused_ = Counter(kConnectionsRefused, registry);
  log_lines_lost_ = Counter(kLogLinesLost, registry);
  for (int state = 0; state < kNumServerStates; ++state) {
    state_[state] =
        Gauge(kState, registry,
              {{"state", StateName(static_cast<ServerState>(state))}});
  }
  cpu_seconds_ = Counter(kCpuSeconds, registry);
  resident_bytes_ = Gauge(kResidentBytes, registry);
  virtual_bytes_ = Gauge(kVirtualBytes, registry);
  open_fds_ = Gauge(kOpenFds, registry);
  max_fds_ = Gauge(kMaxFds, registry);
  start_time_ = Gauge(kStartTime, registry);
  threads_ = Gauge(kThreads, registry);
  for (int fault = 0; fault < kNumTlsFaults; ++fault) {
    handshakes_failed_[fault] =
        Counter(kHandshakesFailed, registry,
                {{"cause", TlsFaultName(static_cast<TlsFault>(fault))}});
  }
  spans_exported_ = Counter(kSpans, registry, {{"outcome", "exported"}});
  spans_dropped_ = Counter(kSpans, registry, {{"outcome", "dropped"}});
  spans_failed_ = Counter(kSpans, registry, {{"outcome", "failed"}});
  certificate_expires_ =
      Gauge(kCertificateExpires, registry, {{"certificate", "server"}});
  client_ca_expires_ =
      Gauge(kCertificateExpires, registry, {{"certificate", "client_ca"}});
  certificate_reloads_ = AddReloads("certificates", registry);
  token_reloads_ = AddReloads("bearer_tokens", registry);
  Gauge(kBuildInfo, registry,
        {{"version", kVersion},
         {"revision", revision},
         {"compiler", __VERSION__}})
      ->Set(1);
}

ServerMetrics::Reloads ServerMetrics::AddReloads(
    const std::string& what, prometheus::Registry& registry) {
  return {Counter(kReloads, registry, {{"what", what}, {"outcome", "ok"}}),
          Counter(kReloads, registry, {{"what", what}, {"outcome", "failed"}}),
          Gauge(kReloadFailing, registry, {{"what", what}})};
}

void ServerMetrics::Sample(const ReloadFigures& figures,
                           const Reloads& reloads) {
  CountUpTo(static_cast<double>(figures.good), reloads.good);
  CountUpTo(static_cast<double>(figures.failed), reloads.failed);
  reloads.failing->Set(figures.failing ? 1 : 0);
}

void ServerMetrics::Sample(const ServerFigures& figures) {
  connections_->Set(static_cast<double>(figures.connections));
  connections_limit_->Set(static_cast<double>(figures.connections_limit));
  streams_->Set(static_cast<double>(figures.streams));
  unread_answer_bytes_->Set(static_cast<double>(figures.unread_answer_bytes));
  CountUpTo(static_cast<double>(figures.unread_answers_cut),
            unread_answers_cut_);
  CountUpTo(static_cast<double>(figures.connections_refused),
            connections_refused_);
  CountUpTo(static_cast<double>(figures.log_lines_lost), log_lines_lost_);
  for (int fault = 0; fault < kNumTlsFaults; ++fault) {
    CountUpTo(static_cast<double>(figures.handshakes_failed[fault]),
              handshakes_failed_[fault]);
  }
  certificate_expires_->Set(
      static_cast<double>(absl::ToUnixSeconds(figures.certificate_expires)));
  client_ca_expires_->Set(
      static_cast<double>(absl::ToUnixSeconds(figures.client_ca_expires)));
  Sample(figures.certificate_reloads, certificate_reloads_);
  Sample(figures.token_reloads, token_reloads_);
  CountUpTo(static_cast<double>(figures.traces.exported), spans_exported_);
  CountUpTo(static_cast<double>(figures.traces.dropped), spans_dropped_);
  CountUpTo(static_cast<double>(figures.traces.failed), spans_failed_);
  for (int state = 0; state < kNumServerStates; ++state) {
    state_[state]->Set(state == static_cast<int>(figures.state) ? 1 : 0);
  }
}

void ServerMetrics::Sample(const ProcessFigures& figures) {
  const auto set = [](prometheus::Gauge* gauge, auto value) {
    if (value > 0) gauge->Set(static_cast<double>(value));
  };
  CountUpTo(figures.cpu_seconds, cpu_seconds_);
  set(resident_bytes_, figures.resident_bytes);
  set(virtual_bytes_, figures.virtual_bytes);
  set(open_fds_, figures.open_fds);
  set(max_fds_, figures.max_fds);
  set(start_time_, figures.start_time_seconds);
  set(threads_, figures.threads);
}

}  // namespace encoderd
