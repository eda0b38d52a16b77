// Every setting of the server, in one place.
//
// Filled from flags by server/flags, checked once by Validate, printed once at
// start, constant afterwards. Nothing else reads a flag, nor the environment
// but for gRPC's own experiments (run.cc) and variables that --fromenv names
// (flag_check.cc).
#ifndef ENCODERD_SERVER_CONFIG_H_
#define ENCODERD_SERVER_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace encoderd {

// "folder" or "name=folder".
struct ModelSource {
  std::string name;  // without "name=": the folder's last part
  std::string folder;
};

struct ServerConfig {
  // The served models; the first is the default. Required. Each has its own
  // Sessions, threads and queue, all with the settings below. Cost: weights
  // stay in memory (MiniLM 90 MB, BERT-base 440 MB in fp32).
  std::vector<ModelSource> models;

  // host:port of gRPC and of HTTP (metrics, health). Port 0: any free one,
  // which the log names. Addresses other than loopback need TLS or `insecure`.
  std::string listen = "127.0.0.1:8400";
  std::string http_listen = "127.0.0.1:8401";  // empty: no HTTP

  // Who may call, and how. The files are reloaded when they are replaced, and
  // on SIGHUP; an invalid replacement changes nothing (log, metrics).

  // PEM files of the server's certificate with its chain, and of its key: both
  // or neither. Both ports then use TLS. Cost: a handshake per connection, and
  // CPU time per byte.
  std::string tls_certificate_file;
  std::string tls_key_file;
  // PEM file of the CAs that sign callers' certificates: gRPC accepts no others
  // (mutual TLS). HTTP never requires one.
  std::string tls_client_ca_file;
  // Names and hashes of bearer tokens (security/token_table.h); gRPC calls need
  // one. HTTP needs none.
  std::string bearer_token_file;
  bool health_needs_token = false;  // grpc.health.v1, too
  // Allows an address other than loopback without TLS: in a trusted network, or
  // behind a proxy with TLS.
  bool insecure = false;

  // Engine. auto: the first supported GPU in bf16, else the CPU in fp32.

  // auto, cpu, cpu:INSTRUCTIONS, cuda, cuda:N, cuda:N,cuda:M,..., cuda:all.
  // Several GPUs: one queue; each has the weights.
  std::string device = "auto";
  std::string dtype = "auto";  // auto, fp32, bf16, fp16
  // What matrix products multiply: dtype; fp8, if the GPU supports it (Hopper);
  // or int8, if the CPU supports it. Cost of both: cosine 0.99 instead of
  // bf16's 0.999.
  std::string products = "dtype";
  // A folder where a GPU stores which algorithms for matrix products are
  // fastest, so that the next start need not time them again; empty: nothing is
  // stored. It changes no bits. Cost: without it, about a second more at each
  // start. Without a GPU it has no effect, and the log says so.
  std::string tuning_folder;
  // Tokens of one input; 0: the model's own limit. May exceed it up to the
  // position table's rows. Cost: attention time grows with its square.
  int32_t max_len = 0;
  // On a GPU: small batches run by CUDA graphs, each of which must first
  // reproduce the bits of a plain run. Cost: GPU memory, up to 64 graphs per
  // thread.
  bool cuda_graphs = true;

  // Scheduling.
  // Sessions, one compute thread each; 0: as many as fill the device. Cost:
  // scratch memory for max_batch_tokens each.
  int32_t threads = 0;
  // Threads that turn text into ids. Cost: each takes a core while it works.
  int32_t tokenizer_threads = 2;
  // Tokens per batch; 0: the device decides. Larger: more throughput on a GPU,
  // longer waits and more scratch memory everywhere.
  int64_t max_batch_tokens = 0;
  // Tokens waiting and computing, over all requests; beyond it QUEUE_FULL. It
  // also limits a single request and the ids that Tokenize returns. Cost: the
  // longest wait (this divided by the device's tokens per second) and about 16
  // bytes per token; for Encode also four bytes per value of each token's state
  // until it is answered.
  int64_t max_queue_tokens = 524288;

  // A request that has waited this long without being computed gets
  // EXPIRED_IN_QUEUE, whatever its own deadline, which many callers do not set.
  // 0: no limit; at least 1 ms.
  absl::Duration max_queue_time = absl::Minutes(10);

  // Requests.
  int32_t max_inputs_per_request = 1024;  // beyond it TOO_MANY_INPUTS
  // Bytes per request or answer. Cost: memory, once per request in flight.
  int64_t max_message_bytes = 16 << 20;
  // Bytes that gRPC may hold for all connections together; at least 256 MiB.
  // gRPC receives a whole message before it measures it: this, not
  // max_message_bytes, bounds the memory that hostile callers can occupy.
  int64_t max_connection_memory_bytes = 256 << 20;
  // Beyond it new ones wait unaccepted; the last 1/64 is for addresses
  // that have none. Lowered if the process may not open enough files. Cost: two
  // file descriptors and about 100 KB each.
  int32_t max_connections = 1024;
  // Per IPv4 address or IPv6 /64, at most max_connections; beyond it new ones
  // are closed. 0: half of all that may be open.
  int32_t max_connections_per_address = 0;
  // An idle connection, and any connection after this age, is asked to
  // reconnect (GOAWAY); open calls and streams end normally. 0: never; at least
  // 1 s. The age lets callers reach a server that was added later.
  absl::Duration max_connection_idle = absl::Minutes(10);
  absl::Duration max_connection_age = absl::Hours(1);  // +-10 %
  int32_t max_streams_per_connection =
      1024;  // calls in flight on one connection
  // Open EmbedStreams of all connections, and apart from them open watches of
  // health; beyond it QUEUE_FULL. Cost: about 20 KB each while idle, up to 1
  // MiB while busy.
  int32_t max_streams = 4096;
  // Bytes of answers that callers have not read; beyond it QUEUE_FULL for
  // connections with other unread answers, and calls unread for 10 s are reset.
  // Cost: memory under attack.
  int64_t max_unread_answer_bytes = 256 << 20;
  // auto, true, false: lets tools list methods and messages. It requires no
  // token, so auto is false if calls need one.
  std::string reflection = "auto";

  // Tracing: host:port, http://host:port or https://host:port of an
  // OpenTelemetry collector (OTLP over gRPC); empty: nothing is traced. Cost:
  // some microseconds a call and up to 2048 spans in memory.
  std::string otlp_endpoint;
  // Of calls without a traceparent, the share that is traced, from 0 to 1. With
  // one, the caller decides. Other than 1 it needs otlp_endpoint.
  double trace_ratio = 1;

  // Draining. After TERM the server reports NOT_SERVING, accepts work for
  // drain_delay (so that load balancers notice; not with a lost device), then
  // rejects new work and waits for accepted work, at most drain_timeout; what
  // is not answered by then gets DRAINING.
  absl::Duration drain_delay = absl::ZeroDuration();
  absl::Duration drain_timeout = absl::Seconds(30);

  bool tls() const { return !tls_certificate_file.empty(); }
  bool serves_reflection() const {
    return reflection == "true" ||
           (reflection == "auto" && bearer_token_file.empty());
  }
};

// INVALID_ARGUMENT names flag, value and limit. Limits of the model (max_len
// against the position table) are checked when it is loaded.
absl::Status Validate(const ServerConfig& config);

// Where spans go.
struct OtlpTarget {
  std::string address;  // host:port
  bool tls = false;
};
// "host:port", "http://host:port" or "https://host:port", the port not 0.
// INVALID_ARGUMENT otherwise.
absl::StatusOr<OtlpTarget> SplitOtlpEndpoint(const std::string& endpoint);

// "name=folder" or "folder" into its parts; a name is 1 to 128 of
// [A-Za-z0-9._/-].
absl::StatusOr<ModelSource> SplitModelFlag(const std::string& flag);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_CONFIG_H_
