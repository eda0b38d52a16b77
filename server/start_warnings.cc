#include "server/start_warnings.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/base/log.h"
#include "server/net/host_port.h"

namespace encoderd {
namespace {

using NamedModel = std::pair<std::string, const ModelInfo*>;

bool IsOnGpu(const NamedModel& model) { return model.second->on_gpu; }

void WarnOfTuning(const ServerConfig& config, const NamedModel& model) {
  Log(LogLevel::kWarning, "no_tuning",
      LogFields()
          .Add("tuning_folder", config.tuning_folder)
          .Add("device", model.second->device)
          .Add("why",
               "--tuning_folder has no effect: only matrix products on a GPU "
               "are timed"));
}

// On a CPU a Session fills a core.
void WarnOfThreads(const ServerConfig& config, const NamedModel& model) {
  Log(LogLevel::kWarning, "more_threads_than_cores",
      LogFields()
          .Add("model", model.first)
          .Add("threads", config.threads)
          .Add("cores", model.second->preferred_sessions)
          .Add("message",
               "more threads than cores compute no faster and take more "
               "memory: lower --threads, or set it to 0 for one per core"));
}

// Whoever sees the traffic can use the tokens.
void WarnOfTokensInPlainText(const ServerConfig& config) {
  Log(LogLevel::kWarning, "tokens_in_plain_text",
      LogFields()
          .Add("listen", config.listen)
          .Add("message",
               "bearer tokens cross the network unencrypted (--insecure): set "
               "--tls_certificate_file and --tls_key_file, unless a proxy "
               "encrypts the connections"));
}

// `limit` tokens are below those that one text may have. token: whose limit it
// is; empty: the server's.
void WarnOfQueue(const NamedModel& model, int64_t limit,
                 const std::string& token) {
  const int32_t max_len = model.second->limits.max_len;
  LogFields fields;
  fields.Add("model", model.first);
  if (!token.empty()) fields.Add("token", token);
  Log(LogLevel::kWarning, "small_queue",
      fields.Add("max_queue_tokens", limit)
          .Add("max_len", max_len)
          .Add("message",
               absl::StrCat("texts of more than ", limit,
                            " tokens are always rejected (REQUEST_TOO_LARGE), "
                            "although the model takes ",
                            max_len, ": raise ",
                            token.empty() ? "--" : "the token's ",
                            "max_queue_tokens to at least ", max_len,
                            ", or lower --max_len")));
}

// The least that a CPU holds of weights of `file_bytes` in their files, which
// may be fp32: bf16 and int8 products narrow them. 0 if only a GPU can compute.
int64_t LeastWeightBytes(const ServerConfig& config, int64_t file_bytes) {
  if (absl::StartsWith(config.device, "cuda") || config.dtype == "fp16" ||
      config.products == "fp8") {
    return 0;
  }
  if (config.products == "int8") return file_bytes / 4;
  return config.dtype == "bf16" ? file_bytes / 2 : file_bytes;
}

}  // namespace

void WarnOfSettings(const ServerConfig& config, const TokenTable* tokens,
                    const std::vector<NamedModel>& models) {
  if (!config.tuning_folder.empty() &&
      std::none_of(models.begin(), models.end(), IsOnGpu)) {
    WarnOfTuning(config, models.front());
  }
  const auto address = ParseHostPort(config.listen);
  if (tokens != nullptr && !config.tls() && address.ok() &&
      OthersReach(*address)) {
    WarnOfTokensInPlainText(config);
  }
  const TokenHolder* const least =
      tokens == nullptr ? nullptr : tokens->LeastQueueTokens();
  for (const NamedModel& model : models) {
    const ModelInfo& info = *model.second;
    if (!IsOnGpu(model) && config.threads > info.preferred_sessions) {
      WarnOfThreads(config, model);
    }
    if (config.max_queue_tokens < info.limits.max_len) {
      WarnOfQueue(model, config.max_queue_tokens, "");
    }
    if (least != nullptr &&
        least->caller().max_queue_tokens < info.limits.max_len) {
      WarnOfQueue(model, least->caller().max_queue_tokens, least->name());
    }
  }
}

void WarnOfLoading(const ServerConfig& config, const LoadSizes& sizes) {
  const int64_t weights_bytes = LeastWeightBytes(config, sizes.weights_bytes);
  const int64_t needed_bytes = sizes.resident_bytes + weights_bytes;
  if (weights_bytes == 0 || sizes.limit_bytes >= needed_bytes) return;
  Log(LogLevel::kWarning, "small_memory_limit",
      LogFields()
          .Add("limit_bytes", sizes.limit_bytes)
          .Add("needed_bytes", needed_bytes)
          .Add("resident_bytes", sizes.resident_bytes)
          .Add("weights_bytes", weights_bytes)
          .Add("message",
               absl::StrCat(
                   "on a CPU, loading the weights may exceed this process's "
                   "memory limit, and the kernel then kills it without a line "
                   "in this log: raise the limit of the "
                   "container or service to more than ",
                   needed_bytes, " bytes")));
}

void WarnOfMemory(const ServerConfig& config, const MemorySizes& memory,
                  const std::vector<NamedModel>& models) {
  int64_t encode_bytes = 0;  // each model has a queue
  for (const NamedModel& model : models) {
    encode_bytes += int64_t{sizeof(float)} * config.max_queue_tokens *
                    model.second->config.hidden_size;
  }
  const int64_t embed_bytes = memory.resident_bytes + memory.scratch_bytes;
  const int64_t needed_bytes = embed_bytes + encode_bytes;
  if (memory.limit_bytes >= needed_bytes) return;
  const bool by_encode = memory.limit_bytes >= embed_bytes;
  Log(LogLevel::kWarning, "small_memory_limit",
      LogFields()
          .Add("limit_bytes", memory.limit_bytes)
          .Add("needed_bytes", needed_bytes)
          .Add("resident_bytes", memory.resident_bytes)
          .Add("scratch_bytes", memory.scratch_bytes)
          .Add("encode_bytes", encode_bytes)
          .Add("message",
               absl::StrCat(
                   by_encode ? "callers that fill the queue with Encode may "
                               "bring this process to"
                             : "under load this process may reach",
                   " its memory limit, and the kernel then kills it without a "
                   "line in this log: raise the limit of the container or "
                   "service to at least ",
                   needed_bytes, " bytes",
                   by_encode ? ", or lower --max_queue_tokens" : "")));
}

}  // namespace encoderd
