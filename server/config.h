// Every setting of the server, in one place.
//
// Filled from flags by server/flags, checked once by Validate, printed once at
// start, constant afterwards. Nobody else reads a flag or the environment.
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
  // The models served; the first is the default. No default: required. Each
  // has Sessions, threads and a queue of its own, all with the settings below.
  // Cost: weights stay in memory (MiniLM 90 MB, BERT-base 440 MB in fp32).
  std::vector<ModelSource> models;

  // host:port of gRPC and of HTTP (metrics, health). Port 0: any free one,
  // which the log names. Other than loopback only with TLS or `insecure`.
  std::string listen = "127.0.0.1:8400";
  std::string http_listen = "127.0.0.1:8401";  // empty: no HTTP

  // Who may call, and how. The files are read again when they are replaced, and
  // on SIGHUP; one that is wrong then changes nothing (log, metrics).
  // PEM files of the server's certificate, with those that signed it, and of
  // its key: both or none. Both ports speak TLS then. Cost: a handshake for
  // each connection, and some of a core for each byte.
  std::string tls_certificate_file;
  std::string tls_key_file;
  // PEM file of the authorities that sign callers' certificates: gRPC takes no
  // others (mutual TLS). HTTP asks for none in any case.
  std::string tls_client_ca_file;
  // Names and hashes of bearer tokens (security/token_table.h); gRPC calls need
  // one. HTTP needs none.
  std::string bearer_token_file;
  bool health_needs_token = false;  // grpc.health.v1, too
  // Without TLS on an address other than loopback: in a network that is
  // trusted, or behind a proxy that has TLS.
  bool insecure = false;

  // Engine. auto: what the machine has, fp32 on a CPU, bf16 on a GPU.
  // auto, cpu, cuda, cuda:N, cuda:N,cuda:M,..., cuda:all. Several GPUs: one
  // queue; the weights lie on each.
  std::string device = "auto";
  std::string dtype = "auto";  // auto, fp32, bf16, fp16
  // What matrix products multiply: dtype, or fp8, where the GPU has it
  // (Hopper). Cost of fp8: cosine 0.99 instead of bf16's 0.999.
  std::string products = "dtype";
  // A folder where a GPU keeps which algorithms of matrix products are fastest,
  // so that the next start need not time them again; empty: nothing is kept.
  // Changes no bits. Cost: without it, about a second more at each start.
  // Without a GPU it has no effect, and the log says so.
  std::string tuning_folder;
  // Tokens of one input; 0: the model's own limit. May exceed it up to the
  // position table's rows. Cost: attention time grows with its square.
  int32_t max_len = 0;
  // On a GPU: small batches by CUDA graphs, each trusted after it gave the bits
  // of a plain run. Cost: memory of the card, up to 64 graphs for each thread.
  bool cuda_graphs = true;

  // Scheduling.
  // Sessions, one compute thread each; 0: as many as fill the device. Cost:
  // scratch memory for max_batch_tokens each.
  int32_t threads = 0;
  // Threads that turn text into ids. Cost: each takes a core while it works.
  int32_t tokenizer_threads = 2;
  // Tokens of one batch; 0: the device's own choice. Larger: more throughput on
  // a GPU, longer waits and more scratch memory everywhere.
  int64_t max_batch_tokens = 0;
  // Tokens waiting and computing, over all requests; beyond it QUEUE_FULL. Also
  // the largest request, and what Tokenize may give. Cost: the longest wait
  // (this divided by the device's tokens per second) and about 16 bytes a
  // token; of Encode four bytes a value of each token's state until it is
  // answered.
  int64_t max_queue_tokens = 524288;

  // A request that waited so long without being computed gets EXPIRED_IN_QUEUE,
  // whatever its own deadline, which many callers do not set. 0: no limit.
  absl::Duration max_queue_time = absl::Minutes(10);

  // Requests.
  int32_t max_inputs_per_request = 1024;  // beyond it TOO_MANY_INPUTS
  // Bytes of one request or one answer. Cost: memory, once a request in flight.
  int64_t max_message_bytes = 16 << 20;
  // Bytes that gRPC may hold for all connections together; at least 256 MiB. It
  // takes a message in whole before it measures it: this, not
  // max_message_bytes, bounds what hostile callers can make it hold.
  int64_t max_connection_memory_bytes = 256 << 20;
  // Beyond it new ones wait unaccepted. Lowered where the process may not open
  // enough files. Cost: two file descriptors and about 100 KB each.
  int32_t max_connections = 1024;
  // Of one IPv4 address or IPv6 /64; beyond it new ones are closed. 0: half of
  // what may be open in all.
  int32_t max_connections_per_address = 0;
  // A connection without calls, and one of any kind after its age, is asked to
  // reconnect (GOAWAY); calls and streams that are open end in their own time.
  // 0: never. Age is what brings callers to a server that was added later.
  absl::Duration max_connection_idle = absl::Minutes(10);
  absl::Duration max_connection_age = absl::Hours(1);  // +-10 %
  int32_t max_streams_per_connection = 1024;  // calls in flight on one of them
  // Open EmbedStreams of all connections; beyond it QUEUE_FULL. Cost: about 20
  // KB each while idle, up to 1 MiB while busy.
  int32_t max_streams = 4096;
  // Bytes of answers that their callers have not read; beyond it QUEUE_FULL for
  // connections with others unread, and what nobody read for 10 s is cut. Cost:
  // memory under attack.
  int64_t max_unread_answer_bytes = 256 << 20;
  // auto, true, false: lets tools list methods and messages. It asks for no
  // token, so auto is false where calls need one.
  std::string reflection = "auto";

  // Leaving. After TERM the server says NOT_SERVING, goes on accepting for
  // drain_delay (so that load balancers see it; not with a lost device), then
  // refuses new work and waits for what it accepted, at most drain_timeout;
  // what is not answered then gets DRAINING.
  absl::Duration drain_delay = absl::ZeroDuration();
  absl::Duration drain_timeout = absl::Seconds(30);

  bool tls() const { return !tls_certificate_file.empty(); }
  bool serves_reflection() const {
    return reflection == "true" ||
           (reflection == "auto" && bearer_token_file.empty());
  }

  // No setting: the commit of the sources, which main.cc knows.
  std::string revision = "unknown";
  // No setting: where a service manager listens (service_manager.h), from the
  // environment variable NOTIFY_SOCKET; empty: nobody asked to be told.
  std::string notify_socket;

  // The whole as "key=value" pairs, for the log.
  std::string ToString() const;
};

// INVALID_ARGUMENT that names flag, value and limit. What only the model knows
// (max_len against the position table) is checked when it is loaded.
absl::Status Validate(const ServerConfig& config);

// Splits "host:port", "[v6]:port" (port 0 allowed). INVALID_ARGUMENT otherwise.
absl::Status SplitHostPort(const std::string& address, std::string* host,
                           int* port);

// "name=folder" or "folder" into its parts; a name is 1 to 128 of
// [A-Za-z0-9._/-].
absl::StatusOr<ModelSource> SplitModelFlag(const std::string& flag);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_CONFIG_H_
