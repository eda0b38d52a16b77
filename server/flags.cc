#include "server/flags.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/reflection.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/version.h"
#include "server/flag_check.h"

namespace {

const encoderd::ServerConfig kDefault;

// Every --model, on the command line or in a flag file. Abseil parses each
// occurrence into a new value and keeps the last; this flag collects them.
struct ModelFlags {
  std::vector<std::string> values;
};

bool AbslParseFlag(absl::string_view text, ModelFlags* flags, std::string*) {
  static auto* const kAll = new std::vector<std::string>;
  if (!text.empty()) kAll->push_back(std::string(text));
  flags->values = *kAll;
  return true;
}

std::string AbslUnparseFlag(const ModelFlags& flags) {
  return absl::StrJoin(flags.values, " ");
}

// A duration whose error says what is missing; Abseil's says nothing.
struct TimeFlag {
  absl::Duration value;
};

bool AbslParseFlag(absl::string_view text, TimeFlag* flag, std::string* error) {
  if (absl::ParseDuration(text, &flag->value)) return true;
  *error = "it takes a time with its unit, such as 500ms, 5s or 2m";
  const std::string seconds = absl::StrCat(text, "s");
  if (absl::ParseDuration(seconds, &flag->value)) {
    absl::StrAppend(error, "; did you mean ", seconds, "?");
  }
  return false;
}

std::string AbslUnparseFlag(const TimeFlag& flag) {
  return absl::FormatDuration(flag.value);
}

}  // namespace

ABSL_FLAG(ModelFlags, model, {},
          "A model to serve: a folder in the Hugging Face or "
          "sentence-transformers layout, or name=folder. Required. Repeat it "
          "to serve several models; the first is the default. Cost: the "
          "weights stay in memory, and each model has its own threads.");
ABSL_FLAG(
    std::string, listen, kDefault.listen,
    "host:port for gRPC; port 0 takes any free one. Addresses other than "
    "loopback need TLS or --insecure. Cost: everyone who can reach it may "
    "call, unless --tls_client_ca_file or --bearer_token_file is set.");
ABSL_FLAG(std::string, http_listen, kDefault.http_listen,
          "host:port for HTTP with /metrics, /healthz and /readyz; empty: no "
          "HTTP. Cost: one mostly idle thread.");
ABSL_FLAG(std::string, tls_certificate_file, kDefault.tls_certificate_file,
          "PEM file with the server's certificate and the chain that signed "
          "it; both ports then use TLS 1.2 or later. Reloaded when it is "
          "replaced, and on SIGHUP. Cost: a handshake per connection.");
ABSL_FLAG(std::string, tls_key_file, kDefault.tls_key_file,
          "PEM file with the certificate's key, without a password. Cost: as "
          "--tls_certificate_file.");
ABSL_FLAG(std::string, tls_client_ca_file, kDefault.tls_client_ca_file,
          "PEM file of CAs; gRPC then accepts only clients with a certificate "
          "that one of them signed (mutual TLS). Without it clients need no "
          "certificate. HTTP never requires one. Cost: a longer handshake.");
ABSL_FLAG(
    std::string, bearer_token_file, kDefault.bearer_token_file,
    "File of the bearer tokens that gRPC calls need, one per line: NAME SHA256 "
    "[max_calls=N] [max_queue_tokens=N]. Without it everyone may call. "
    "Reloaded when it is replaced, and on SIGHUP. HTTP never requires a token. "
    "Cost: some microseconds per call with hundreds of tokens.");
ABSL_FLAG(bool, health_needs_token, kDefault.health_needs_token,
          "With --bearer_token_file: grpc.health.v1 needs a token, too. Cost: "
          "probes must have one.");
ABSL_FLAG(
    bool, insecure, kDefault.insecure,
    "Listen on addresses other than loopback without TLS. Cost: anyone on that "
    "network can read requests, answers and bearer tokens, and can call.");
ABSL_FLAG(
    std::string, device, kDefault.device,
    "Where to compute: auto, cpu, cpu:INSTRUCTIONS (portable, avx2, avx512, "
    "avx512_bf16: the same bits on every such CPU; or avx512_amx, which has "
    "not run on such a CPU yet and is used only if named), cuda (the first "
    "GPU), cuda:N, cuda:N,cuda:M,... or cuda:all. auto takes the first GPU if "
    "it is supported, else the CPU, and the log says why. Several GPUs must be "
    "of one kind. Cost: each GPU holds all weights, and the scratch memory of "
    "its threads; older instructions are slower.");
ABSL_FLAG(std::string, dtype, kDefault.dtype,
          "Number format of the matrix products: auto, fp32, bf16 or fp16. "
          "auto is fp32 on a CPU and bf16 on a GPU. fp16 needs a GPU. "
          "Cost of bf16 and fp16: cosine 0.999 instead of exact.");
ABSL_FLAG(std::string, products, kDefault.products,
          "What matrix products multiply: dtype (values of --dtype) or 8 bits "
          "with one scale per row: fp8 (only on a GPU of compute capability "
          "9.0) or int8 (only on a CPU with avx512_vnni). Cost of both: cosine "
          "0.99 instead of bf16's 0.999.");
ABSL_FLAG(std::string, tuning_folder, kDefault.tuning_folder,
          "Folder where a GPU stores which algorithms for matrix products are "
          "fastest, so that the next start need not time them again; empty: "
          "nothing is stored. It does not change results. Cost: a small file; "
          "without it, about a second per start. No effect on a CPU.");
ABSL_FLAG(int32_t, max_len, kDefault.max_len,
          "Largest number of tokens per input, special tokens included; 0: the "
          "model's own limit. At most the position table's rows (rotary: what "
          "the model was trained for; sinusoidal: 65536). Cost: attention time "
          "grows with its square.");
ABSL_FLAG(bool, cuda_graphs, kDefault.cuda_graphs,
          "On a GPU: run small batches by CUDA graphs; each graph must first "
          "reproduce the bits of a plain run. Cost: GPU memory, up to 64 "
          "graphs per thread.");
ABSL_FLAG(int32_t, threads, kDefault.threads,
          "Compute threads, distributed over the GPUs, each with its own "
          "batch; 0: as many as fill the device. Cost: scratch memory for "
          "max_batch_tokens each.");
ABSL_FLAG(
    int32_t, tokenizer_threads, kDefault.tokenizer_threads,
    "Threads that turn text into ids. Cost: each takes a core while it works.");
ABSL_FLAG(int64_t, max_batch_tokens, kDefault.max_batch_tokens,
          "Tokens per batch; 0: the device decides. Cost: scratch memory, and "
          "the time a new request waits for the running batch.");
ABSL_FLAG(int64_t, max_queue_tokens, kDefault.max_queue_tokens,
          "Tokens waiting and computing over all requests; beyond it "
          "RESOURCE_EXHAUSTED (QUEUE_FULL). Cost: the longest wait is this "
          "divided by the device's tokens per second.");
ABSL_FLAG(
    TimeFlag, max_queue_time, TimeFlag{kDefault.max_queue_time},
    "Longest wait of a request until its compute begins, whatever its own "
    "deadline: a time with its unit, such as 10m, at least 1ms. Beyond "
    "it DEADLINE_EXCEEDED (EXPIRED_IN_QUEUE); 0: no limit. Checked when "
    "a thread takes work, so nothing expires while the device hangs. "
    "Cost: callers without a deadline may wait that long, and then for "
    "their compute.");
ABSL_FLAG(int32_t, max_inputs_per_request, kDefault.max_inputs_per_request,
          "Inputs per request; beyond it INVALID_ARGUMENT (TOO_MANY_INPUTS). "
          "Cost: memory per request.");
ABSL_FLAG(int64_t, max_message_bytes, kDefault.max_message_bytes,
          "Bytes per request or answer; at most --max_connection_memory_bytes. "
          "Cost: memory, once per request in flight.");
ABSL_FLAG(int64_t, max_connection_memory_bytes,
          kDefault.max_connection_memory_bytes,
          "Bytes that gRPC may hold for all connections together; at least 256 "
          "MiB. Cost: memory under attack.");
ABSL_FLAG(int32_t, max_connections, kDefault.max_connections,
          "Open connections; beyond it new ones wait unaccepted. If the value "
          "is 64 or more, 1/64 of the connections is reserved for addresses "
          "that have none; when only these are left, connections from other "
          "addresses are closed. Cost: two file descriptors and about 100 KB "
          "each.");
ABSL_FLAG(int32_t, max_connections_per_address,
          kDefault.max_connections_per_address,
          "Open connections per IPv4 address or IPv6 /64; beyond it new ones "
          "are closed; at most --max_connections; 0: half of it. Cost: callers "
          "behind one proxy share it.");
ABSL_FLAG(TimeFlag, max_connection_idle, TimeFlag{kDefault.max_connection_idle},
          "How long a connection may be without calls before it is closed: a "
          "time with its unit, such as 10m, at least 1s; 0: no limit. Cost: "
          "its caller reconnects for the next call; a call that arrives as it "
          "closes ends with UNAVAILABLE.");
ABSL_FLAG(TimeFlag, max_connection_age, TimeFlag{kDefault.max_connection_age},
          "Age (+-10 %) at which a connection is asked to close once its calls "
          "are done: a time with its unit, such as 1h, at least 1s; 0: never. "
          "This is how callers find servers that were added later. Cost: they "
          "reconnect.");
ABSL_FLAG(int32_t, max_streams_per_connection,
          kDefault.max_streams_per_connection,
          "Calls in flight per connection. Cost: about 10 KB each.");
ABSL_FLAG(
    int32_t, max_streams, kDefault.max_streams,
    "Open EmbedStreams of all connections and, counted separately, open health "
    "watches; beyond it RESOURCE_EXHAUSTED (QUEUE_FULL). Cost: about 20 KB "
    "each while idle, 1 MiB while busy, or a longer request and its answer.");
ABSL_FLAG(int64_t, max_unread_answer_bytes, kDefault.max_unread_answer_bytes,
          "Bytes of answers that callers have not read yet; beyond it calls on "
          "connections with unread answers get RESOURCE_EXHAUSTED "
          "(QUEUE_FULL), and calls whose answer was not read for 10 s are "
          "reset. Cost: memory under attack.");
ABSL_FLAG(std::string, reflection, kDefault.reflection,
          "Serve gRPC reflection, so that tools can list methods and messages: "
          "true, false, or auto, which is true unless calls need tokens. Cost: "
          "anyone can read the (public) schema, without a token.");
ABSL_FLAG(
    std::string, otlp_endpoint, kDefault.otlp_endpoint,
    "host:port of an OpenTelemetry collector (OTLP over gRPC) that gets a "
    "span for each call; prefix it with https:// to encrypt; empty: no "
    "tracing. A call whose metadata has a traceparent joins that trace. Cost: "
    "some microseconds per call. Spans that the collector does not take are "
    "dropped and counted.");
ABSL_FLAG(
    double, trace_ratio, kDefault.trace_ratio,
    "With --otlp_endpoint: the share of calls without a traceparent that "
    "is traced, 0 to 1; if a call has one, its caller decides. Cost: load "
    "on the collector.");
ABSL_FLAG(
    TimeFlag, drain_delay, TimeFlag{kDefault.drain_delay},
    "After TERM: how long to accept work while health reports NOT_SERVING; a "
    "time with its unit, such as 5s. Cost: shutdown takes that much longer.");
ABSL_FLAG(
    TimeFlag, drain_timeout, TimeFlag{kDefault.drain_timeout},
    "After TERM: the longest wait for accepted work, a time with its "
    "unit, such as 30s; calls still unanswered then get DRAINING, "
    "which callers have 1 s more to read. Cost: shutdown may take that long.");

namespace encoderd {
namespace {

// Abseil ends a process that was asked for help with 1, as if something failed.
void ExitWithZeroAfterHelp() {
  std::atexit([] {
    std::cout.flush();
    _exit(0);
  });
}

}  // namespace

absl::StatusOr<ServerConfig> ConfigFromFlags(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Serves a BERT-style encoder over gRPC: text in, embeddings out.\n"
      "  encoderd --model=FOLDER [--model=NAME=FOLDER ...] [flags]\n"
      "  encoderd --flagfile=FILE    one flag per line");
  absl::FlagsUsageConfig usage;
  usage.contains_help_flags = IsServerFlagFile;
  usage.contains_helpshort_flags = IsServerFlagFile;
  // Relative to the sources, not to the host that built it.
  usage.normalize_filename = [](absl::string_view file) {
    const size_t start = file.rfind("server/");
    return std::string(start == file.npos ? file : file.substr(start));
  };
  usage.version_string = [] {
    return absl::StrCat("encoderd ", kVersion, "\n");
  };
  absl::SetFlagsUsageConfig(usage);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (auto help = HelpFlags(arguments); !help.empty()) {
    ExitWithZeroAfterHelp();
    arguments = std::move(help);
  } else {
    auto expanded = CheckArguments(arguments);
    if (!expanded.ok()) return expanded.status();
    arguments = *std::move(expanded);
  }
  std::vector<char*> all = {argv[0]};
  for (std::string& argument : arguments) {
    if (argument == "-h" || argument == "--h") argument = "--help";
    all.push_back(argument.data());
  }
  absl::ParseCommandLine(static_cast<int>(all.size()), all.data());
  ServerConfig config;
  for (const std::string& flag : absl::GetFlag(FLAGS_model).values) {
    auto model = SplitModelFlag(flag);
    if (!model.ok()) return model.status();
    config.models.push_back(*std::move(model));
  }
  config.listen = absl::GetFlag(FLAGS_listen);
  config.http_listen = absl::GetFlag(FLAGS_http_listen);
  config.tls_certificate_file = absl::GetFlag(FLAGS_tls_certificate_file);
  config.tls_key_file = absl::GetFlag(FLAGS_tls_key_file);
  config.tls_client_ca_file = absl::GetFlag(FLAGS_tls_client_ca_file);
  config.bearer_token_file = absl::GetFlag(FLAGS_bearer_token_file);
  config.health_needs_token = absl::GetFlag(FLAGS_health_needs_token);
  config.insecure = absl::GetFlag(FLAGS_insecure);
  config.device = absl::GetFlag(FLAGS_device);
  config.dtype = absl::GetFlag(FLAGS_dtype);
  config.products = absl::GetFlag(FLAGS_products);
  config.tuning_folder = absl::GetFlag(FLAGS_tuning_folder);
  config.max_len = absl::GetFlag(FLAGS_max_len);
  config.cuda_graphs = absl::GetFlag(FLAGS_cuda_graphs);
  config.threads = absl::GetFlag(FLAGS_threads);
  config.tokenizer_threads = absl::GetFlag(FLAGS_tokenizer_threads);
  config.max_batch_tokens = absl::GetFlag(FLAGS_max_batch_tokens);
  config.max_queue_tokens = absl::GetFlag(FLAGS_max_queue_tokens);
  config.max_queue_time = absl::GetFlag(FLAGS_max_queue_time).value;
  config.max_inputs_per_request = absl::GetFlag(FLAGS_max_inputs_per_request);
  config.max_message_bytes = absl::GetFlag(FLAGS_max_message_bytes);
  config.max_connection_memory_bytes =
      absl::GetFlag(FLAGS_max_connection_memory_bytes);
  config.max_connections = absl::GetFlag(FLAGS_max_connections);
  config.max_connections_per_address =
      absl::GetFlag(FLAGS_max_connections_per_address);
  config.max_connection_idle = absl::GetFlag(FLAGS_max_connection_idle).value;
  config.max_connection_age = absl::GetFlag(FLAGS_max_connection_age).value;
  config.max_streams_per_connection =
      absl::GetFlag(FLAGS_max_streams_per_connection);
  config.max_streams = absl::GetFlag(FLAGS_max_streams);
  config.max_unread_answer_bytes = absl::GetFlag(FLAGS_max_unread_answer_bytes);
  config.reflection = absl::GetFlag(FLAGS_reflection);
  config.otlp_endpoint = absl::GetFlag(FLAGS_otlp_endpoint);
  config.trace_ratio = absl::GetFlag(FLAGS_trace_ratio);
  config.drain_delay = absl::GetFlag(FLAGS_drain_delay).value;
  config.drain_timeout = absl::GetFlag(FLAGS_drain_timeout).value;
  const absl::Status status = Validate(config);
  if (!status.ok()) return status;
  return config;
}

LogFields FlagsInUse() {
  std::map<absl::string_view, std::string> values;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (IsServerFlagFile(flag->Filename())) {
      values.emplace(name, flag->CurrentValue());
    }
  }
  LogFields fields;
  for (const auto& [name, value] : values) fields.Add(name, value);
  return fields;
}

}  // namespace encoderd
