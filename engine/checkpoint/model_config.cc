#include "engine/checkpoint/model_config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/architecture.h"
#include "engine/checkpoint/head_files.h"
#include "engine/checkpoint/sentence_modules.h"
#include "engine/io/file.h"
#include "engine/io/json.h"

namespace encoderd {
namespace {

// Sizes far beyond any model, so that a wrong file is named as such and no
// product of them overflows.
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxWidth = 1 << 18;
constexpr int64_t kMaxRows = 1 << 28;

// Keeps the first error, so that a list of fields reads as a list.
template <typename T, typename U>
void Take(absl::StatusOr<T> value, U* out, absl::Status* status) {
  if (value.ok()) {
    *out = static_cast<U>(*std::move(value));
  } else {
    status->Update(value.status());
  }
}

absl::Status Unsupported(const JsonFields& fields, absl::string_view key,
                         absl::string_view supported) {
  const Json* value = fields.Find(key);
  return absl::UnimplementedError(absl::StrCat(
      fields.name(), ": ", key, " ", value ? ShowJson(*value) : "",
      " is not supported", supported.empty() ? "" : "; ", supported));
}

// Settings that would change digits, whatever the architecture.
absl::Status CheckPlainEncoder(const JsonFields& fields) {
  for (const char* key :
       {"is_decoder", "add_cross_attention", "is_encoder_decoder"}) {
    const absl::StatusOr<bool> on = fields.Bool(key, false);
    if (!on.ok()) return on.status();
    if (*on) return Unsupported(fields, key, "only encoders are");
  }
  for (const char* key : {"auto_map", "quantization_config", "pruned_heads"}) {
    const Json* value = fields.Find(key);
    if (value != nullptr && !value->empty()) {
      return Unsupported(fields, key, "");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadPositionScheme(const JsonFields& fields,
                                const Architecture& architecture,
                                ModelConfig* config) {
  constexpr char kKey[] = "position_embedding_type";
  const absl::StatusOr<std::string> type = fields.String(kKey, "absolute");
  if (!type.ok()) return type.status();
  if (architecture.position_scheme != nullptr) {
    config->position_scheme = &architecture.position_scheme();
    if (*type == "absolute") return absl::OkStatus();
    return Unsupported(
        fields, kKey,
        absl::StrCat(architecture.model_type, " has none but absolute"));
  }
  config->position_scheme = FindPositionScheme(*type);
  if (config->position_scheme != nullptr) return absl::OkStatus();
  return Unsupported(
      fields, kKey,
      absl::StrCat("supported are: ", SupportedPositionSchemes()));
}

absl::StatusOr<Activation> ReadActivation(const JsonFields& fields,
                                          const char* key,
                                          const char* if_unset) {
  static constexpr std::pair<const char*, Activation> kActivations[] = {
      {"gelu", Activation::kGeluErf},
      {"gelu_python", Activation::kGeluErf},
      {"gelu_new", Activation::kGeluTanh},
      {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"relu", Activation::kRelu},
  };
  const absl::StatusOr<std::string> name = fields.String(key, if_unset);
  if (!name.ok()) return name.status();
  for (const auto& row : kActivations) {
    if (*name == row.first) return row.second;
  }
  return Unsupported(fields, key,
                     "gelu, gelu_python, gelu_new, gelu_pytorch_tanh and relu "
                     "are");
}

absl::Status ReadPositionOffset(const JsonFields& fields,
                                const Architecture& architecture,
                                ModelConfig* config) {
  if (architecture.padding_row == PaddingRow::kNone) return absl::OkStatus();
  int32_t padding = 1;
  if (architecture.padding_row == PaddingRow::kPadTokenId) {
    absl::Status status;
    Take(fields.Int("pad_token_id", 0, config->vocab_size - 1, 1), &padding,
         &status);
    if (!status.ok()) return status;
  }
  config->position_offset = padding + 1;
  if (config->position_scheme->has_table() &&
      config->max_position_embeddings <= config->position_offset) {
    return fields.Bad(
        architecture.config.max_position_embeddings,
        absl::StrCat("want more than the ", config->position_offset,
                     " rows that are not for tokens"));
  }
  return absl::OkStatus();
}

// ALBERT: num_hidden_layers steps, each a whole group of inner_group_num
// layers; neighbouring steps share a group.
absl::Status ReadGroups(const JsonFields& fields, const ConfigKeys& keys,
                        ModelConfig* config) {
  if (keys.num_hidden_groups == nullptr) return absl::OkStatus();
  const int32_t steps = config->num_hidden_layers;
  int32_t groups = 0;
  absl::Status status;
  Take(fields.Int(keys.num_hidden_groups, 1, steps, 1), &groups, &status);
  Take(fields.Int(keys.inner_group_num, 1, kMaxLayers / steps, 1),
       &config->inner_group_num, &status);
  if (!status.ok()) return status;
  for (int32_t step = 0; step < steps; ++step) {
    // The quotient of a quotient, as transformers has it: it may round
    // differently from step * groups / steps.
    const auto group = static_cast<int32_t>(
        step / (static_cast<double>(steps) / static_cast<double>(groups)));
    for (int32_t inner = 0; inner < config->inner_group_num; ++inner)
      config->layer_weights.push_back(group * config->inner_group_num + inner);
  }
  config->num_hidden_layers = steps * config->inner_group_num;
  return absl::OkStatus();
}

absl::Status ReadFactoring(const JsonFields& fields,
                           const Architecture& architecture,
                           ModelConfig* config) {
  const char* key = architecture.config.embedding_size;
  if (key == nullptr) return absl::OkStatus();
  absl::Status status;
  Take(fields.Int(key, 1, kMaxWidth, architecture.default_embedding_size),
       &config->embedding_size, &status);
  if (config->embedding_size == config->hidden_size &&
      !architecture.always_projects) {
    config->embedding_size = 0;
  }
  return status;
}

absl::Status ReadSizes(const JsonFields& fields,
                       const Architecture& architecture, ModelConfig* config) {
  const ConfigKeys& keys = architecture.config;
  absl::Status status;
  Take(fields.Int(keys.num_hidden_layers, 1, kMaxLayers),
       &config->num_hidden_layers, &status);
  Take(fields.Int(keys.hidden_size, 1, kMaxWidth), &config->hidden_size,
       &status);
  Take(fields.Int(keys.num_attention_heads, 1, kMaxWidth),
       &config->num_attention_heads, &status);
  Take(fields.Int(keys.intermediate_size, 1, kMaxWidth),
       &config->intermediate_size, &status);
  Take(fields.Int(keys.vocab_size, 1, kMaxRows), &config->vocab_size, &status);
  std::optional<int64_t> rows_if_unset;
  if (!config->position_scheme->has_table()) rows_if_unset = 0;
  Take(fields.Int(keys.max_position_embeddings, 1, kMaxRows, rows_if_unset),
       &config->max_position_embeddings, &status);
  if (keys.type_vocab_size != nullptr) {
    Take(fields.Int(keys.type_vocab_size, 0, kMaxRows,
                    architecture.default_type_vocab_size),
         &config->type_vocab_size, &status);
  }
  if (keys.layer_norm_eps != nullptr) {
    Take(fields.Number(keys.layer_norm_eps, 1e-30, 1.0, 1e-12),
         &config->layer_norm_eps, &status);
  }
  if (keys.attention_bias_rows != nullptr) {
    const int32_t rows = config->position_scheme->bias_rows();
    Take(fields.Int(keys.attention_bias_rows, rows, kMaxWidth, rows),
         &config->attention_bias_rows, &status);
  }
  Take(ReadActivation(fields, keys.hidden_act, architecture.default_hidden_act),
       &config->hidden_act, &status);
  if (!status.ok()) return status;
  status = ReadFactoring(fields, architecture, config);
  if (status.ok()) status = ReadGroups(fields, keys, config);
  if (!status.ok()) return status;
  if (config->hidden_size % config->num_attention_heads != 0) {
    return fields.Bad(keys.num_attention_heads,
                      absl::StrCat("want a divisor of ", keys.hidden_size, " ",
                                   config->hidden_size));
  }
  return ReadPositionOffset(fields, architecture, config);
}

// model_max_length; 0: says nothing. Tokenizers without a limit carry 1e30.
absl::StatusOr<int64_t> ReadModelMaxLength(const std::string& folder,
                                           const ModelConfig& config) {
  const std::string name =
      JoinName(config.transformer_folder, "tokenizer_config.json");
  if (!FileExists(folder, name)) return 0;
  const absl::StatusOr<Json> json = ReadJsonObject(folder, name);
  if (!json.ok()) return json.status();
  const JsonFields fields(*json, name);
  const absl::StatusOr<double> length = fields.Number(
      "model_max_length", 1, std::numeric_limits<double>::max(), 1e30);
  if (!length.ok()) return length.status();
  return *length >= std::numeric_limits<int32_t>::max()
             ? 0
             : static_cast<int64_t>(std::floor(*length));
}

absl::Status SetMaxLen(const std::string& folder, int32_t flag,
                       ModelConfig* config) {
  const absl::StatusOr<int64_t> sentence = ReadMaxSeqLength(folder, *config);
  if (!sentence.ok()) return sentence.status();
  const absl::StatusOr<int64_t> tokenizer = ReadModelMaxLength(folder, *config);
  if (!tokenizer.ok()) return tokenizer.status();
  const bool has_table = config->position_scheme->has_table();
  const int32_t offset = config->position_offset;
  absl::StatusOr<MaxLen> max_len = ChooseMaxLen(
      {.table = std::max(config->max_position_embeddings - offset, 0),
       .table_bounds = has_table,
       .max_seq_length = *sentence,
       .model_max_length = *tokenizer,
       .flag = flag});
  if (!max_len.ok()) return max_len.status();
  config->max_len = max_len->tokens;
  config->max_len_source = max_len->source;
  config->notes.insert(config->notes.end(), max_len->notes.begin(),
                       max_len->notes.end());
  if (!has_table) config->max_position_embeddings = config->max_len + offset;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelConfig> LoadModelConfig(const std::string& folder,
                                            int32_t max_len_flag) {
  ModelConfig config;
  int64_t pooling_width = 0;
  absl::Status status = ReadSentenceModules(folder, &config, &pooling_width);
  if (!status.ok()) return status;

  const std::string name = JoinName(config.transformer_folder, "config.json");
  const absl::StatusOr<Json> json = ReadJsonObject(folder, name);
  if (!json.ok()) return json.status();
  const JsonFields fields(*json, name);
  Take(fields.String("model_type"), &config.model_type, &status);
  if (!status.ok()) return status;
  const Architecture* architecture = FindArchitecture(config.model_type);
  if (architecture == nullptr) {
    return Unsupported(
        fields, "model_type",
        absl::StrCat("supported are: ", SupportedArchitectures()));
  }
  status = CheckPlainEncoder(fields);
  if (status.ok()) status = ReadPositionScheme(fields, *architecture, &config);
  if (status.ok()) status = ReadSizes(fields, *architecture, &config);
  if (status.ok()) status = SetMaxLen(folder, max_len_flag, &config);
  if (!status.ok()) return status;
  if (pooling_width != 0 && pooling_width != config.hidden_size) {
    return absl::DataLossError(absl::StrCat(
        "the Pooling module's word_embedding_dimension is ", pooling_width,
        "; the hidden_size is ", config.hidden_size));
  }
  status = FitHead(config.hidden_size, &config.head);
  if (!status.ok()) return status;
  return config;
}

}  // namespace encoderd
