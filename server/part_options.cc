#include "server/part_options.h"

#include <utility>

#include "server/net/host_port.h"
#include "server/trace/otlp.h"

namespace encoderd {

SecretFiles SecretFilesOf(const ServerConfig& config) {
  SecretFiles files;
  files.certificates.certificate = config.tls_certificate_file;
  files.certificates.key = config.tls_key_file;
  files.certificates.client_ca = config.tls_client_ca_file;
  files.tokens = config.bearer_token_file;
  return files;
}

absl::StatusOr<GrpcServerOptions> GrpcOptionsOf(const ServerConfig& config) {
  auto listen = ParseHostPort(config.listen);
  if (!listen.ok()) return listen.status();
  GrpcServerOptions options;
  options.listen = *std::move(listen);
  options.tls = config.tls();
  options.reflection = config.serves_reflection();
  options.max_message_bytes = config.max_message_bytes;
  options.max_connection_memory_bytes = config.max_connection_memory_bytes;
  options.max_connections = config.max_connections;
  options.max_connections_per_address = config.max_connections_per_address;
  options.max_streams_per_connection = config.max_streams_per_connection;
  options.max_connection_idle = config.max_connection_idle;
  options.max_connection_age = config.max_connection_age;
  return options;
}

ModelOptions ModelOptionsOf(const ServerConfig& config) {
  ModelOptions options;
  options.device = config.device;
  options.dtype = config.dtype;
  options.products = config.products;
  options.tuning_folder = config.tuning_folder;
  options.max_len = config.max_len;
  options.cuda_graphs = config.cuda_graphs;
  return options;
}

PipelineOptions PipelineOptionsOf(const ServerConfig& config) {
  PipelineOptions options;
  options.max_batch_tokens = config.max_batch_tokens;
  options.max_queue_tokens = config.max_queue_tokens;
  options.tokenizer_threads = config.tokenizer_threads;
  if (config.max_queue_time > absl::ZeroDuration()) {
    options.max_queue_time = config.max_queue_time;
  }
  // Any one message fits, whose ids of a byte each take four here.
  options.max_queue_bytes =
      4 * config.max_message_bytes +
      config.max_inputs_per_request * InputBytes(TextInput());
  return options;
}

std::unique_ptr<Tracer> NewTracer(const ServerConfig& config) {
  if (config.otlp_endpoint.empty()) return nullptr;
  const auto target = SplitOtlpEndpoint(config.otlp_endpoint);  // validated
  TraceOptions options;
  options.ratio = config.trace_ratio;
  return std::make_unique<Tracer>(
      options, NewOtlpExporter(target->address, target->tls));
}

}  // namespace encoderd
