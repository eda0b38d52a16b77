// Every setting of the server, in one place.
//
// Each is a flag's: server/flags fills this struct, Validate checks it once,
// and it is constant afterwards. Nothing else takes a value from a flag.
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
  // The served models, at least one. A request that names none gets the first.
  // Each has its own Sessions, threads and queue, with the settings below.
  // Cost: weights stay in memory (MiniLM 90 MB, BERT-base 440 MB in fp32).
  std::vector<ModelSource> models;

  // Addresses, host:port, of gRPC and of HTTP (/metrics, /healthz, /readyz).
  // Port 0: any free one, which the log names. Addresses other than loopback
  // need TLS or `insecure`.
  std::string listen = "127.0.0.1:8400";
  std::string http_listen = "127.0.0.1:8401";  // empty: no HTTP

  // Who may call, and how. The files are reloaded when they are replaced, and
  // on SIGHUP; an invalid replacement is logged and counted, and changes
  // nothing.

  // PEM files: the server's certificate with the chain that signed it, and its
  // key without a password. Both or neither; with them both ports use TLS 1.2
  // or later. Cost: a handshake per connection, and CPU time per byte.
  std::string tls_certificate_file;
  std::string tls_key_file;
  // PEM file of CAs: gRPC accepts only clients with a certificate that one of
  // them signed (mutual TLS); HTTP never requires one. Needs the two above.
  // Cost: a longer handshake.
  std::string tls_client_ca_file;
  // Names and hashes of bearer tokens (security/token_table.h): gRPC calls need
  // one, or get UNAUTHENTICATED; HTTP never requires one. Cost: some
  // microseconds per call with hundreds of tokens.
  std::string bearer_token_file;
  // grpc.health.v1 needs a token, too. Needs bearer_token_file.
  bool health_needs_token = false;
  // Allows addresses other than loopback without TLS: in a trusted network, or
  // behind a proxy with TLS. Cost: anyone on that network can read everything,
  // tokens included.
  bool insecure = false;

  // Engine. A combination that the device or the model does not support ends
  // the start when the model is loaded.

  // Where to compute: auto, cpu, cpu:INSTRUCTIONS, cuda (the first GPU),
  // cuda:N, cuda:N,cuda:M,... or cuda:all. auto: the first GPU if it is
  // supported, else the CPU. Several GPUs must be of one kind; they share one
  // queue. Cost: each holds all weights.
  std::string device = "auto";
  // Number format of the matrix products: auto (fp32 on a CPU, bf16 on a GPU),
  // fp32, bf16, or fp16 (GPU). Cost of 16 bits: cosine 0.999 instead of exact.
  std::string dtype = "auto";
  // What matrix products multiply: dtype (values of the dtype), or 8 bits: fp8
  // (a GPU of compute capability 9.0) or int8 (a CPU with avx512_vnni). Cost of
  // both: cosine 0.99 instead of bf16's 0.999.
  std::string products = "dtype";
  // A folder where a GPU stores which algorithms for matrix products are
  // fastest, so that the next start need not time them again. It changes no
  // bits. Empty: nothing is stored. On a CPU it has no effect, and the log says
  // so. Cost: a small file; without it, about a second per start.
  std::string tuning_folder;
  // Tokens per input, special tokens included; a longer one gets
  // INPUT_TOO_LONG. 0: the model's own limit. At most the position table's rows
  // (rotary: what the model was trained for; sinusoidal: 65536). Cost:
  // attention time grows with its square.
  int32_t max_len = 0;
  // On a GPU: batches of up to 2048 tokens run by CUDA graphs, each of which
  // must first reproduce the bits of a plain run. Cost: GPU memory, up to 64
  // graphs per thread.
  bool cuda_graphs = true;

  // Scheduling, of each model.

  // Compute threads, each with its own Session and batch, distributed over the
  // GPUs. 0: as many as fill the device. Cost: scratch memory for
  // max_batch_tokens each.
  int32_t threads = 0;
  // Threads that turn text into ids. Cost: each takes a core while it works.
  int32_t tokenizer_threads = 2;
  // Tokens per batch; 0: the device decides. Larger: more throughput on a GPU.
  // Cost: scratch memory, and the time a new request waits for the running
  // batch.
  int64_t max_batch_tokens = 0;
  // Tokens waiting and computing, over all requests; beyond it QUEUE_FULL, and
  // REQUEST_TOO_LARGE for a request that alone exceeds it. It also limits the
  // ids that Tokenize returns. Cost: the longest wait (this divided by the
  // device's tokens per second) and about 16 bytes per token; for Encode also
  // four bytes per value of each token's state until it is answered.
  int64_t max_queue_tokens = 524288;
  // How long a request may wait until its compute begins, whatever its own
  // deadline, which many callers do not set; then it gets EXPIRED_IN_QUEUE.
  // 0: no limit; at least 1 ms. Cost: callers without a deadline may wait that
  // long.
  absl::Duration max_queue_time = absl::Minutes(10);

  // Requests and connections.

  // Inputs per request; beyond it TOO_MANY_INPUTS. Cost: memory per request.
  int32_t max_inputs_per_request = 1024;
  // Bytes per request or answer, at most max_connection_memory_bytes; beyond it
  // RESOURCE_EXHAUSTED from gRPC for the request, REQUEST_TOO_LARGE for the
  // answer. Cost: memory, once per request in flight.
  int64_t max_message_bytes = 16 << 20;
  // Bytes that gRPC may hold for all connections together; at least 256 MiB.
  // gRPC receives a whole message before it measures it: this, not
  // max_message_bytes, bounds the memory that hostile callers can occupy.
  int64_t max_connection_memory_bytes = 256 << 20;
  // Open connections; beyond it new ones wait unaccepted. If it is 64 or more,
  // 1/64 of them is reserved for addresses that have none; when only these are
  // left, connections from other addresses are closed. Lowered, with a warning,
  // if the process may not open enough files. Cost: two file descriptors and
  // about 100 KB each.
  int32_t max_connections = 1024;
  // Open connections per IPv4 address or IPv6 /64, at most max_connections;
  // beyond it new ones are closed. 0: half of all that may be open. Cost:
  // callers behind one proxy share it.
  int32_t max_connections_per_address = 0;
  // How long a connection may be without calls, and how old it may become
  // (+-10 %), before it is asked to close (GOAWAY); calls and streams in flight
  // end normally. 0: no limit; at least 1 s. The age lets callers reach servers
  // that were added later. Cost: callers reconnect.
  absl::Duration max_connection_idle = absl::Minutes(10);
  absl::Duration max_connection_age = absl::Hours(1);
  // Calls in flight per connection. Cost: about 10 KB each.
  int32_t max_streams_per_connection = 1024;
  // Open EmbedStreams of all connections and, counted separately, open health
  // watches; beyond it QUEUE_FULL. Cost: about 20 KB each while idle, up to 1
  // MiB while busy.
  int32_t max_streams = 4096;
  // Bytes of answers that callers have not read; beyond it calls on connections
  // with unread answers get QUEUE_FULL, and calls whose answer was not read for
  // 10 s are reset. Cost: memory under attack; for a few seconds 1.5 times as
  // much.
  int64_t max_unread_answer_bytes = 256 << 20;
  // Whether tools may list methods and messages: true, false, or auto, which is
  // true unless calls need tokens. Reflection itself never needs one.
  std::string reflection = "auto";

  // Tracing.

  // host:port of an OpenTelemetry collector (OTLP over gRPC) that gets a span
  // per call, also with http:// or, to encrypt, https:// before it; empty: no
  // tracing. Cost: some microseconds per call, and up to 2048 spans in memory;
  // further ones are dropped and counted.
  std::string otlp_endpoint;
  // Share of the calls without a traceparent that is traced, 0 to 1; if a call
  // has one, its caller decides. Other than 1 it needs otlp_endpoint. Cost:
  // load on the collector.
  double trace_ratio = 1;

  // Draining.

  // After TERM: how long the server accepts work while health reports
  // NOT_SERVING, so that load balancers notice; not with a lost device.
  absl::Duration drain_delay = absl::ZeroDuration();
  // After that: how long it waits for accepted work, at most; new work gets
  // DRAINING, and then what is not answered does, too.
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
