#include "server/config.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/device/device_words.h"
#include "server/observe/log.h"

namespace encoderd {
namespace {

constexpr int64_t kMaxModelName = 128;  // bytes
constexpr int64_t kMiB = 1 << 20;
constexpr char kHostPort[] = "must be host:port, such as 127.0.0.1:8400";

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

absl::Status DeviceWord(const std::string& value) {
  if (ParseDevice(value).has_value()) return absl::OkStatus();
  return Bad("device", value, absl::StrCat("must be one of ", kDeviceWords));
}

absl::Status Address(absl::string_view flag, const std::string& value) {
  std::string host;
  int port = 0;
  const absl::Status status = SplitHostPort(value, &host, &port);
  if (status.ok()) return status;
  return Bad(flag, value, std::string(status.message()));
}

// Everyone who reaches an address can read and call, unless it has TLS or the
// operator accepts this.
absl::Status Reach(const ServerConfig& c, absl::string_view flag,
                   const std::string& address) {
  if (c.tls() || c.insecure || !OthersReach(address)) return absl::OkStatus();
  return Bad(
      flag, address,
      "other machines can reach this address, and it is not encrypted: set "
      "--tls_certificate_file and --tls_key_file, or --insecure if you trust "
      "the network");
}

// Two listeners of one process cannot share a port, and the system would only
// say that it is in use.
absl::Status TwoPorts(const ServerConfig& c) {
  std::string hosts[2];
  int ports[2] = {};
  if (!SplitHostPort(c.listen, &hosts[0], &ports[0]).ok() ||
      !SplitHostPort(c.http_listen, &hosts[1], &ports[1]).ok() ||
      ports[0] != ports[1] || ports[0] == 0) {
    return absl::OkStatus();
  }
  const auto is_any = [](const std::string& host) {
    return host == "0.0.0.0" || host == "::";
  };
  if (hosts[0] != hosts[1] && !is_any(hosts[0]) && !is_any(hosts[1])) {
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

absl::Status SplitHostPort(const std::string& address, std::string* host,
                           int* port) {
  if (absl::StartsWith(address, "unix:") ||
      absl::StartsWith(address, "unix-abstract:") ||
      absl::StartsWith(address, "/")) {
    return absl::InvalidArgumentError(
        "Unix sockets are not supported: give host:port, such as "
        "127.0.0.1:8400");
  }
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    return absl::InvalidArgumentError(kHostPort);
  }
  *host = address.substr(0, colon);
  const bool bracketed = host->front() == '[' && host->back() == ']';
  if (bracketed) *host = host->substr(1, host->size() - 2);
  if (host->empty() || (!bracketed && host->find(':') != std::string::npos)) {
    return absl::InvalidArgumentError(kHostPort);
  }
  const std::string digits = address.substr(colon + 1);
  if (!std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(digits, port) || *port > 65535) {
    return absl::InvalidArgumentError("the port must be 0 to 65535");
  }
  return absl::OkStatus();
}

bool OthersReach(const std::string& address) {
  std::string host;
  int port = 0;
  if (!SplitHostPort(address, &host, &port).ok()) return false;
  const bool loopback =
      host == "localhost" || host == "::1" ||
      (absl::StartsWith(host, "127.") &&
       host.find_first_not_of("0123456789.") == std::string::npos);
  return !loopback;
}

absl::StatusOr<OtlpTarget> SplitOtlpEndpoint(const std::string& endpoint) {
  OtlpTarget target;
  absl::string_view address = endpoint;
  target.tls = absl::ConsumePrefix(&address, "https://");
  if (!target.tls) absl::ConsumePrefix(&address, "http://");
  absl::ConsumeSuffix(&address, "/");
  target.address = std::string(address);
  std::string host;
  int port = 0;
  if (!SplitHostPort(target.address, &host, &port).ok() || port == 0) {
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

std::string Join(const std::vector<ModelSource>& models,
                 std::string ModelSource::*part) {
  return absl::StrJoin(models, ",",
                       [part](std::string* out, const ModelSource& model) {
                         out->append(model.*part);
                       });
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
      OneOf("dtype", c.dtype, {"auto", "fp32", "bf16", "fp16"}),
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

std::string ServerConfig::ToString() const {
  LogFields fields;
  fields.Add("model", Join(models, &ModelSource::name))
      .Add("folder", Join(models, &ModelSource::folder))
      .Add("listen", listen)
      .Add("http_listen", http_listen)
      .Add("tls_certificate_file", tls_certificate_file)
      .Add("tls_key_file", tls_key_file)
      .Add("tls_client_ca_file", tls_client_ca_file)
      .Add("bearer_token_file", bearer_token_file)
      .Add("health_needs_token", health_needs_token ? "true" : "false")
      .Add("insecure", insecure ? "true" : "false")
      .Add("device", device)
      .Add("dtype", dtype)
      .Add("products", products)
      .Add("tuning_folder", tuning_folder)
      .Add("max_len", max_len)
      .Add("cuda_graphs", cuda_graphs ? "true" : "false")
      .Add("threads", threads)
      .Add("tokenizer_threads", tokenizer_threads)
      .Add("max_batch_tokens", max_batch_tokens)
      .Add("max_queue_tokens", max_queue_tokens)
      .Add("max_queue_time", absl::FormatDuration(max_queue_time))
      .Add("max_inputs_per_request", max_inputs_per_request)
      .Add("max_message_bytes", max_message_bytes)
      .Add("max_connection_memory_bytes", max_connection_memory_bytes)
      .Add("max_connections", max_connections)
      .Add("max_connections_per_address", max_connections_per_address)
      .Add("max_connection_idle", absl::FormatDuration(max_connection_idle))
      .Add("max_connection_age", absl::FormatDuration(max_connection_age))
      .Add("max_streams_per_connection", max_streams_per_connection)
      .Add("max_streams", max_streams)
      .Add("max_unread_answer_bytes", max_unread_answer_bytes)
      .Add("reflection", reflection)
      .Add("otlp_endpoint", otlp_endpoint)
      .Add("trace_ratio", trace_ratio)
      .Add("drain_delay", absl::FormatDuration(drain_delay))
      .Add("drain_timeout", absl::FormatDuration(drain_timeout));
  return fields.text();
}

}  // namespace encoderd
