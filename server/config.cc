#include "server/config.h"

#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/device/device_words.h"
#include "server/net/host_port.h"

namespace encoderd {
namespace {

constexpr int64_t kMaxModelName = 128;  // bytes
constexpr int64_t kMiB = 1 << 20;

absl::Status Bad(absl::string_view flag, absl::string_view value,
                 absl::string_view rule) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", value, ": ", rule));
}

absl::Status InRange(absl::string_view flag, int64_t value, int64_t low,
                     int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return Bad(flag, absl::StrCat(value),
             absl::StrCat("must be ", low, " to ", high));
}

absl::Status DurationInRange(absl::string_view flag, absl::Duration value,
                             absl::Duration high) {
  if (value >= absl::ZeroDuration() && value <= high) return absl::OkStatus();
  return Bad(flag, absl::FormatDuration(value),
             absl::StrCat("must be 0 to ", absl::FormatDuration(high)));
}

// 0 turns the limit off; below `low` it would end whatever it is for.
absl::Status OffOrInRange(absl::string_view flag, absl::Duration value,
                          absl::Duration low, absl::Duration high) {
  if (value == absl::ZeroDuration() || (value >= low && value <= high)) {
    return absl::OkStatus();
  }
  return Bad(flag, absl::FormatDuration(value),
             absl::StrCat("must be 0 (no limit) or ", absl::FormatDuration(low),
                          " to ", absl::FormatDuration(high)));
}

absl::Status OneOf(absl::string_view flag, const std::string& value,
                   const std::vector<std::string>& allowed) {
  std::string list;
  for (const std::string& choice : allowed) {
    if (value == choice) return absl::OkStatus();
    absl::StrAppend(&list, list.empty() ? "" : ", ", choice);
  }
  return Bad(flag, value, absl::StrCat("must be one of ", list));
}

absl::Status Dtype(const std::string& value) {
  if (value == "int8" || value == "fp8") {
    return Bad(
        "dtype", value,
        absl::StrCat("8 bits are for products alone: set --products=", value));
  }
  return OneOf("dtype", value, {"auto", "fp32", "bf16", "fp16"});
}

absl::Status DeviceWord(const std::string& value) {
  if (ParseDevice(value).has_value()) return absl::OkStatus();
  return Bad("device", value, absl::StrCat("must be one of ", kDeviceWords));
}

absl::Status Address(absl::string_view flag, const std::string& value) {
  const absl::Status status = ParseHostPort(value).status();
  if (status.ok()) return status;
  return Bad(flag, value, std::string(status.message()));
}

// Everyone who reaches an address can read and call, unless it has TLS or the
// operator accepts this.
absl::Status Reach(const ServerConfig& c, absl::string_view flag,
                   const std::string& address) {
  const auto parsed = ParseHostPort(address);
  if (c.tls() || c.insecure || !parsed.ok() || !OthersReach(*parsed)) {
    return absl::OkStatus();
  }
  return Bad(
      flag, address,
      "other machines can reach this address, and it is not encrypted: set "
      "--tls_certificate_file and --tls_key_file, or --insecure if you trust "
      "the network");
}

// Two listeners of one process cannot share a port, and the system would only
// say that it is in use.
absl::Status TwoPorts(const ServerConfig& c) {
  const auto grpc = ParseHostPort(c.listen);
  const auto http = ParseHostPort(c.http_listen);
  if (!grpc.ok() || !http.ok() || grpc->port != http->port || grpc->port == 0) {
    return absl::OkStatus();
  }
  const auto is_any = [](const std::string& host) {
    return host == "0.0.0.0" || host == "::";
  };
  if (grpc->host != http->host && !is_any(grpc->host) && !is_any(http->host)) {
    return absl::OkStatus();
  }
  return Bad("http_listen", c.http_listen,
             absl::StrCat("--listen=", c.listen,
                          " has the same port; choose another one"));
}

absl::Status Tls(const ServerConfig& c) {
  if (c.tls_certificate_file.empty() != c.tls_key_file.empty()) {
    return c.tls_key_file.empty()
               ? Bad("tls_certificate_file", c.tls_certificate_file,
                     "needs --tls_key_file")
               : Bad("tls_key_file", c.tls_key_file,
                     "needs --tls_certificate_file");
  }
  if (!c.tls_client_ca_file.empty() && !c.tls()) {
    return Bad("tls_client_ca_file", c.tls_client_ca_file,
               "needs --tls_certificate_file and --tls_key_file");
  }
  if (c.health_needs_token && c.bearer_token_file.empty()) {
    return Bad("health_needs_token", "true", "needs --bearer_token_file");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OtlpTarget> SplitOtlpEndpoint(const std::string& endpoint) {
  OtlpTarget target;
  absl::string_view address = endpoint;
  target.tls = absl::ConsumePrefix(&address, "https://");
  if (!target.tls) absl::ConsumePrefix(&address, "http://");
  absl::ConsumeSuffix(&address, "/");
  target.address = std::string(address);
  const auto parsed = ParseHostPort(target.address);
  if (!parsed.ok() || parsed->port == 0) {
    return Bad("otlp_endpoint", endpoint,
               "must be host:port of a collector's OTLP over gRPC, such as "
               "localhost:4317, optionally with http:// or https:// in front");
  }
  return target;
}

absl::StatusOr<ModelSource> SplitModelFlag(const std::string& flag) {
  ModelSource source;
  const size_t equals = flag.find('=');
  source.folder = equals == std::string::npos ? flag : flag.substr(equals + 1);
  if (source.folder.empty()) {
    return Bad("model", flag, "must be a model folder or name=folder");
  }
  if (equals == std::string::npos) {
    std::string folder = flag;
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    source.name = folder.substr(folder.rfind('/') + 1);
  } else {
    source.name = flag.substr(0, equals);
  }
  const int64_t length = static_cast<int64_t>(source.name.size());
  if (length < 1 || length > kMaxModelName) {
    return Bad("model", flag,
               absl::StrCat("the name must have 1 to ", kMaxModelName,
                            " bytes; set one with name=folder"));
  }
  for (char c : source.name) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '_' && c != '-' &&
        c != '/') {
      return Bad("model", flag,
                 "a name may have only letters, digits and . _ - /; set one "
                 "with name=folder");
    }
  }
  return source;
}

namespace {

absl::Status CheckModels(const std::vector<ModelSource>& models) {
  if (models.empty()) {
    return absl::InvalidArgumentError(
        "--model is missing: pass the folder of a model");
  }
  std::set<std::string> names;
  for (const ModelSource& model : models) {
    if (!names.insert(model.name).second) {
      return Bad("model", absl::StrCat(model.name, "=", model.folder),
                 absl::StrCat("another --model already has the name '",
                              model.name, "'; choose a different name"));
    }
  }
  return absl::OkStatus();
}

// More than all connections would be no limit.
absl::Status PerAddress(const ServerConfig& c) {
  if (c.max_connections_per_address > c.max_connections) {
    return Bad(
        "max_connections_per_address",
        absl::StrCat(c.max_connections_per_address),
        absl::StrCat("must be at most --max_connections=", c.max_connections));
  }
  return InRange("max_connections_per_address", c.max_connections_per_address,
                 0, c.max_connections);
}

// gRPC would reset a larger message.
absl::Status MessageBytes(const ServerConfig& c) {
  if (c.max_message_bytes > c.max_connection_memory_bytes) {
    return Bad("max_message_bytes", absl::StrCat(c.max_message_bytes),
               absl::StrCat("must be at most --max_connection_memory_bytes=",
                            c.max_connection_memory_bytes));
  }
  return InRange("max_message_bytes", c.max_message_bytes, 64 << 10, 1 << 30);
}

absl::Status Tracing(const ServerConfig& c) {
  if (!(c.trace_ratio >= 0 && c.trace_ratio <= 1)) {
    return Bad("trace_ratio", absl::StrCat(c.trace_ratio), "must be 0 to 1");
  }
  if (!c.otlp_endpoint.empty()) {
    return SplitOtlpEndpoint(c.otlp_endpoint).status();
  }
  if (c.trace_ratio == ServerConfig().trace_ratio) return absl::OkStatus();
  return Bad("trace_ratio", absl::StrCat(c.trace_ratio),
             "needs --otlp_endpoint");
}

}  // namespace

absl::Status Validate(const ServerConfig& c) {
  const std::vector<absl::Status> checks = {
      CheckModels(c.models),
      Address("listen", c.listen),
      c.http_listen.empty() ? absl::OkStatus()
                            : Address("http_listen", c.http_listen),
      TwoPorts(c),
      Tls(c),
      Reach(c, "listen", c.listen),
      Reach(c, "http_listen", c.http_listen),
      DeviceWord(c.device),
      Dtype(c.dtype),
      OneOf("products", c.products, {"dtype", "fp8", "int8"}),
      InRange("max_len", c.max_len, 0, 1 << 20),
      InRange("threads", c.threads, 0, 1024),
      InRange("tokenizer_threads", c.tokenizer_threads, 1, 256),
      InRange("max_batch_tokens", c.max_batch_tokens, 0, 1 << 22),
      InRange("max_queue_tokens", c.max_queue_tokens, 1, int64_t{1} << 32),
      OffOrInRange("max_queue_time", c.max_queue_time, absl::Milliseconds(1),
                   absl::Hours(24)),
      InRange("max_inputs_per_request", c.max_inputs_per_request, 1, 1 << 20),
      InRange("max_connection_memory_bytes", c.max_connection_memory_bytes,
              256 * kMiB, int64_t{1} << 40),
      MessageBytes(c),
      InRange("max_connections", c.max_connections, 1, 1 << 20),
      PerAddress(c),
      OffOrInRange("max_connection_idle", c.max_connection_idle,
                   absl::Seconds(1), absl::Hours(24)),
      OffOrInRange("max_connection_age", c.max_connection_age, absl::Seconds(1),
                   absl::Hours(24 * 7)),
      InRange("max_streams_per_connection", c.max_streams_per_connection, 1,
              1 << 20),
      InRange("max_streams", c.max_streams, 1, 1 << 20),
      InRange("max_unread_answer_bytes", c.max_unread_answer_bytes, kMiB,
              int64_t{1} << 40),
      OneOf("reflection", c.reflection, {"auto", "true", "false"}),
      Tracing(c),
      DurationInRange("drain_delay", c.drain_delay, absl::Hours(1)),
      DurationInRange("drain_timeout", c.drain_timeout, absl::Hours(1)),
  };
  for (const absl::Status& check : checks) {
    if (!check.ok()) return check;
  }
  return absl::OkStatus();
}

}  // namespace encoderd
