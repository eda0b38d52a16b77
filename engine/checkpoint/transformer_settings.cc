#include "engine/checkpoint/transformer_settings.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/checkpoint/sentence_modules.h"
#include "engine/io/file.h"
#include "engine/io/json.h"

namespace encoderd {
namespace {

constexpr char kModelMaxLength[] = "model_max_length";

// Arguments of from_pretrained() that say where files come from, in which
// number format to compute, how to compute or how to pad: the model stays the
// same.
constexpr absl::string_view kFetching[] = {
    "cache_dir", "local_files_only",  "revision",
    "token",     "trust_remote_code", "use_auth_token"};
constexpr absl::string_view kOfModel[] = {
    "add_pooling_layer", "attn_implementation", "device_map",     "dtype",
    "low_cpu_mem_usage", "torch_dtype",         "use_safetensors"};
constexpr absl::string_view kOfTokenizer[] = {"clean_up_tokenization_spaces",
                                              kModelMaxLength, "padding",
                                              "padding_side", "use_fast"};
constexpr absl::string_view kOfConfig[] = {
    "attn_implementation", "output_attentions", "output_hidden_states",
    "return_dict", "use_cache"};

// A set of arguments, by its name of today and its older one.
struct Arguments {
  const char* names[2];
  absl::Span<const absl::string_view> ignored;
  absl::string_view file;  // where to set such a thing instead; "": nowhere
};

absl::Status CheckArguments(const JsonFields& fields,
                            const Arguments& arguments,
                            TransformerSettings* out) {
  for (const char* name : arguments.names) {
    const Json* const set = fields.Find(name);
    if (set == nullptr) continue;
    if (!set->is_object()) return fields.Bad(name, "expected an object");
    const JsonFields members(*set, absl::StrCat(fields.name(), ", ", name));
    for (const auto& member : set->items()) {
      const std::string& key = member.key();
      const bool is_ignored = absl::c_linear_search(arguments.ignored, key);
      // Of which null is no limit.
      const bool is_length = is_ignored && key == kModelMaxLength;
      if ((member.value().is_null() && !is_length) ||
          absl::c_linear_search(kFetching, key)) {
        continue;
      }
      if (!is_ignored) {
        return absl::UnimplementedError(absl::StrCat(
            members.name(), ": ", Quote(key), " is not supported",
            arguments.file.empty() ? "" : "; set it in ", arguments.file));
      }
      if (!is_length) continue;
      const absl::StatusOr<int64_t> length = ModelMaxLength(members);
      if (!length.ok()) return length.status();
      out->model_max_length = *length;
    }
  }
  return absl::OkStatus();
}

// Settings of which only one value, or none, gives the vectors that are served.
absl::Status CheckServed(const JsonFields& fields) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"transformer_task", "feature-extraction"},
      {"module_output_name", "token_embeddings"}};
  for (const auto& [key, served] : kNames) {
    const absl::StatusOr<std::string> name = fields.String(key, served);
    if (!name.ok()) return name.status();
    if (*name != served) {
      return absl::UnimplementedError(absl::StrCat(fields.name(), ": the ", key,
                                                   " ", Quote(*name),
                                                   " is not supported"));
    }
  }
  for (const char* key :
       {"tokenizer_name_or_path", "query_length", "document_length",
        "query_expansion", "processing_kwargs"}) {
    const Json* const value = fields.Find(key);
    const bool may_be_empty = absl::string_view(key) == "processing_kwargs";
    if (value == nullptr || (may_be_empty && value->empty())) continue;
    return absl::UnimplementedError(absl::StrCat(
        fields.name(), ": ", key, " ", ShowJson(*value), " is not supported"));
  }
  return absl::OkStatus();
}

// Texts must become vectors by the states of the last layer.
absl::Status CheckModality(const JsonFields& fields) {
  constexpr char kKey[] = "modality_config";
  const Json* const modalities = fields.Find(kKey);
  if (modalities == nullptr) return absl::OkStatus();
  const Json served = {{"method", "forward"},
                       {"method_output_name", "last_hidden_state"}};
  if (!modalities->is_object()) return fields.Bad(kKey, "expected an object");
  const auto text = modalities->find("text");
  if (text != modalities->end() && *text == served) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      fields.name(), ": a ", kKey,
      " in which text is not the last_hidden_state of forward is not "
      "supported"));
}

absl::StatusOr<TransformerSettings> Read(const JsonFields& fields) {
  TransformerSettings out;
  absl::Status status;
  Take(fields.Bool("do_lower_case", false), &out.lowercase, &status);
  if (fields.Find("max_seq_length") != nullptr) {
    Take(fields.Int("max_seq_length", 1, std::numeric_limits<int32_t>::max()),
         &out.max_seq_length, &status);
  }
  const Arguments kArguments[] = {
      {{"model_kwargs", "model_args"}, kOfModel, ""},
      {{"processor_kwargs", "tokenizer_args"},
       kOfTokenizer,
       "tokenizer_config.json"},
      {{"config_kwargs", "config_args"}, kOfConfig, "config.json"},
  };
  if (status.ok()) status = CheckServed(fields);
  if (status.ok()) status = CheckModality(fields);
  for (const Arguments& arguments : kArguments)
    if (status.ok()) status = CheckArguments(fields, arguments, &out);
  if (!status.ok()) return status;
  if (out.model_max_length.has_value()) out.max_seq_length = 0;
  return out;
}

}  // namespace

absl::StatusOr<int64_t> ModelMaxLength(const JsonFields& fields) {
  // transformers still reads the key of its oldest versions.
  constexpr char kOldest[] = "max_len";
  const bool is_old = !fields.object().contains(kModelMaxLength) &&
                      fields.Find(kOldest) != nullptr;
  const absl::StatusOr<double> length =
      fields.Number(is_old ? kOldest : kModelMaxLength, 1,
                    std::numeric_limits<double>::max(), 1e30);
  if (!length.ok()) return length.status();
  return *length >= std::numeric_limits<int32_t>::max()
             ? 0
             : static_cast<int64_t>(std::floor(*length));
}

absl::StatusOr<TransformerSettings> ReadTransformerSettings(
    const std::string& folder, const std::string& transformer_folder) {
  for (const char* kind : {"bert", "roberta", "distilbert", "camembert",
                           "albert", "xlm-roberta", "xlnet"}) {
    const std::string name = JoinName(
        transformer_folder, absl::StrCat("sentence_", kind, "_config.json"));
    const absl::StatusOr<bool> exists = FileExists(folder, name);
    if (!exists.ok()) return exists.status();
    if (!*exists) continue;
    const absl::StatusOr<Json> json = ReadJsonObject(folder, name, kSmallJson);
    if (!json.ok()) return json.status();
    if (json->empty()) continue;  // as if it were not there
    absl::StatusOr<TransformerSettings> settings =
        Read(JsonFields(*json, name));
    if (settings.ok()) settings->file = name;
    return settings;
  }
  return TransformerSettings();
}

}  // namespace encoderd
