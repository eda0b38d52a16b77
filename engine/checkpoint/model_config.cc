#include "engine/checkpoint/model_config.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/architecture.h"
#include "engine/checkpoint/head_files.h"
#include "engine/checkpoint/layers.h"
#include "engine/checkpoint/sentence_modules.h"
#include "engine/checkpoint/settings.h"
#include "engine/checkpoint/transformer_settings.h"
#include "engine/io/file.h"
#include "engine/io/json.h"

namespace encoderd {
namespace {

// Sizes far beyond any model, so that a wrong file is named as such and no
// product of them overflows.
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxRows = 1 << 28;

// Settings that would change digits, whatever the architecture and in this one.
absl::Status CheckPlainEncoder(const Settings& settings) {
  const JsonFields& fields = settings.fields();
  for (const char* key :
       {"is_decoder", "add_cross_attention", "is_encoder_decoder"}) {
    const absl::StatusOr<bool> on = fields.Bool(key, false);
    if (!on.ok()) return on.status();
    if (*on) return Unsupported(fields, key, "only encoders can be served");
  }
  for (const char* key : {"auto_map", "quantization_config", "pruned_heads"}) {
    const Json* value = fields.Find(key);
    if (value != nullptr && !value->empty()) {
      return Unsupported(fields, key, "");
    }
  }
  // transformers reads these under either name, and takes whichever comes last
  // in the file.
  for (const char* name : {"num_hidden_layers", "hidden_size",
                           "num_attention_heads", "max_position_embeddings"}) {
    const std::string key = settings.key(name);
    const Json* const one = fields.Find(name);
    const Json* const other = fields.Find(key);
    if (one != nullptr && other != nullptr && *one != *other) {
      return Unsupported(
          fields, name,
          absl::StrCat("it contradicts ", key, " ", ShowJson(*other)));
    }
  }
  for (const auto& [key, served] : settings.architecture().only.items()) {
    const auto value = fields.object().find(key);
    if (value == fields.object().end() || *value == served) continue;
    // To transformers null is not absent, but false.
    if (!value->is_null() || (served != nullptr && served != false)) {
      return Unsupported(fields, key,
                         absl::StrCat("supported: ", ShowJson(served)));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadPositionScheme(const Settings& settings, ModelConfig* config) {
  constexpr char kKey[] = "position_embedding_type";
  const JsonFields& fields = settings.fields();
  const Architecture& architecture = settings.architecture();
  const absl::StatusOr<std::string> type = fields.String(kKey, "absolute");
  if (!type.ok()) return type.status();
  if (architecture.position_scheme != nullptr) {
    config->position_scheme = architecture.position_scheme;
    const std::string& called = architecture.positions_called;
    if (*type == "absolute" || (!called.empty() && *type == called))
      return absl::OkStatus();
    return Unsupported(
        fields, kKey,
        absl::StrCat(architecture.model_type, " supports only absolute",
                     called.empty() ? "" : " and ", called, " positions"));
  }
  config->position_scheme = FindPositionScheme(*type);
  if (config->position_scheme != nullptr) return absl::OkStatus();
  return Unsupported(fields, kKey,
                     absl::StrCat("supported: ", SupportedPositionSchemes()));
}

absl::StatusOr<Activation> ReadActivation(const Settings& settings) {
  static constexpr std::pair<const char*, Activation> kActivations[] = {
      {"gelu", Activation::kGeluErf},
      {"gelu_python", Activation::kGeluErf},
      {"gelu_new", Activation::kGeluTanh},
      {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"relu", Activation::kRelu},
  };
  const std::string key = settings.key("hidden_act");
  const absl::StatusOr<std::string> name = settings.String("hidden_act");
  if (!name.ok()) return name.status();
  // transformers fails at null, and has a default without the key.
  const bool is_null = settings.fields().IsNull(key);
  for (const auto& row : kActivations) {
    if (*name == row.first && !is_null) return row.second;
  }
  return Unsupported(settings.fields(), key,
                     "supported: gelu, gelu_python, gelu_new, "
                     "gelu_pytorch_tanh, relu");
}

absl::Status ReadPositionOffset(const Settings& settings, ModelConfig* config) {
  const PaddingRow row = settings.architecture().padding_row;
  if (row == PaddingRow::kNone) return absl::OkStatus();
  const JsonFields& fields = settings.fields();
  int32_t padding = 1;
  if (row == PaddingRow::kPadTokenId) {
    absl::Status status;
    Take(fields.Int("pad_token_id", 0, config->vocab_size - 1, 1), &padding,
         &status);
    if (!status.ok()) return status;
  }
  config->position_offset = padding + 1;
  if (config->position_scheme->has_table() &&
      config->max_position_embeddings <= config->position_offset) {
    return fields.Bad(
        settings.key("max_position_embeddings"),
        absl::StrCat("expected more than the ", config->position_offset,
                     " rows that are not for tokens"));
  }
  return absl::OkStatus();
}

// ALBERT: num_hidden_layers steps, each a whole group of inner_group_num
// layers; neighboring steps share a group.
absl::Status ReadGroups(const Settings& settings, ModelConfig* config) {
  if (settings.key("num_hidden_groups").empty()) return absl::OkStatus();
  const int32_t steps = config->num_hidden_layers;
  int32_t groups = 0;
  absl::Status status;
  Take(settings.Int("num_hidden_groups", 1, steps), &groups, &status);
  Take(settings.Int("inner_group_num", 1, kMaxLayers / steps),
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

// The form of the layers, and which biases the checkpoint has.
absl::Status ReadForm(const Settings& settings, ModelConfig* config) {
  const Architecture& architecture = settings.architecture();
  config->pre_norm = architecture.pre_norm;
  config->segments_of_tokens = architecture.segments_of_tokens;
  config->gated = architecture.gated;
  config->attention_bias = config->position_scheme->biases_attention();
  config->tensors = architecture.tensors;
  absl::Status status;
  for (TensorRow& row : config->tensors.rows) {
    if (row.bias_key.empty()) continue;
    Take(settings.fields().Bool(row.bias_key, false), &row.bias, &status);
  }
  return status.ok() ? ReadLayers(settings, config) : status;
}

absl::Status ReadSizes(const Settings& settings, ModelConfig* config) {
  absl::Status status;
  const auto width = [&](const char* setting, int32_t* out) {
    Take(settings.Int(setting, 1, kMaxWidth), out, &status);
  };
  Take(settings.Int("num_hidden_layers", 1, kMaxLayers),
       &config->num_hidden_layers, &status);
  width("hidden_size", &config->hidden_size);
  width("num_attention_heads", &config->num_attention_heads);
  std::optional<int64_t> inner_if_unset;
  if (const auto size = settings.Default("intermediate_size"); size.has_value())
    inner_if_unset = ExtentOf(*size, *config);
  Take(settings.Int("intermediate_size", 1, kMaxWidth, inner_if_unset),
       &config->intermediate_size, &status);
  Take(settings.Int("vocab_size", 1, kMaxRows), &config->vocab_size, &status);
  std::optional<int64_t> rows_if_unset;
  if (!config->position_scheme->has_table()) rows_if_unset = 0;
  Take(settings.Int("max_position_embeddings", 1, kMaxRows, rows_if_unset),
       &config->max_position_embeddings, &status);
  Take(settings.Int("type_vocab_size", 0, kMaxRows), &config->type_vocab_size,
       &status);
  Take(settings.Number("layer_norm_eps", 1e-30, 1.0), &config->layer_norm_eps,
       &status);
  Take(settings.Int("attention_bias_rows", config->position_scheme->bias_rows(),
                    kMaxWidth),
       &config->attention_bias_rows, &status);
  Take(ReadActivation(settings), &config->hidden_act, &status);
  width("embedding_size", &config->embedding_size);
  if (status.ok()) status = ReadGroups(settings, config);
  if (!status.ok()) return status;
  if (config->embedding_size == config->hidden_size &&
      !settings.architecture().always_projects) {
    config->embedding_size = 0;
  }
  if (config->hidden_size % config->num_attention_heads != 0) {
    return settings.fields().Bad(
        settings.key("num_attention_heads"),
        absl::StrCat("expected a divisor of ", settings.key("hidden_size"), " ",
                     config->hidden_size));
  }
  status = ReadPositionOffset(settings, config);
  return status.ok() ? ReadForm(settings, config) : status;
}

std::string TokenizerConfig(const ModelConfig& config) {
  return JoinName(config.transformer_folder, "tokenizer_config.json");
}

// That of tokenizer_config.json; 0: it sets none.
absl::StatusOr<int64_t> ReadModelMaxLength(const std::string& folder,
                                           const ModelConfig& config) {
  const std::string name = TokenizerConfig(config);
  const absl::StatusOr<Json> json = ReadOptionalJsonObject(folder, name);
  if (!json.ok()) return json.status();
  return ModelMaxLength(JsonFields(*json, name));
}

// As ModelConfig::max_len_setting.
std::string SettingOf(MaxLenSource source, const Settings& settings,
                      const TransformerSettings& transformer,
                      const ModelConfig& config) {
  switch (source) {
    case MaxLenSource::kFlag:
      return "";
    case MaxLenSource::kSentenceTransformers:
      return absl::StrCat("max_seq_length in ", transformer.file);
    case MaxLenSource::kTokenizer:
      return absl::StrCat("model_max_length in ",
                          transformer.model_max_length.has_value()
                              ? transformer.file
                              : TokenizerConfig(config));
    case MaxLenSource::kPositionTable:
    case MaxLenSource::kMaxPositions:
      break;
  }
  return absl::StrCat(settings.key("max_position_embeddings"), " in ",
                      settings.fields().name());
}

absl::Status SetMaxLen(const std::string& folder, const Settings& settings,
                       const TransformerSettings& transformer, int32_t flag,
                       ModelConfig* config) {
  absl::StatusOr<int64_t> tokenizer = ReadModelMaxLength(folder, *config);
  if (!tokenizer.ok()) return tokenizer.status();
  if (transformer.model_max_length.has_value())
    tokenizer = *transformer.model_max_length;
  const bool has_table = config->position_scheme->has_table();
  const int32_t offset = config->position_offset;
  absl::StatusOr<MaxLen> max_len = ChooseMaxLen(
      {.table = std::max(config->max_position_embeddings - offset, 0),
       .table_bounds = has_table || !config->position_scheme->adds_rows(),
       .is_table = has_table || config->position_scheme->adds_rows(),
       .max_seq_length = transformer.max_seq_length,
       .model_max_length = *tokenizer,
       .flag = flag});
  if (!max_len.ok()) return max_len.status();
  config->max_len = max_len->tokens;
  config->max_len_source = max_len->source;
  config->max_len_setting =
      SettingOf(max_len->source, settings, transformer, *config);
  config->notes.insert(config->notes.end(), max_len->notes.begin(),
                       max_len->notes.end());
  if (!has_table) config->max_position_embeddings = config->max_len + offset;
  return absl::OkStatus();
}

// A model for a task has a head, and sentence-transformers would load it as a
// reranker or for sparse vectors.
absl::Status WarnOfHead(const JsonFields& fields, ModelConfig* config) {
  constexpr char kKey[] = "architectures";
  const Json* const names = fields.Find(kKey);
  if (names == nullptr || names->empty()) return absl::OkStatus();
  if (!names->is_array() || !names->front().is_string())
    return fields.Bad(kKey, "expected an array");
  const std::string name = names->front().get<std::string>();
  if (absl::EndsWith(name, "Model")) return absl::OkStatus();
  config->warnings.push_back(
      absl::StrCat(fields.name(), " names ", Quote(name),
                   ", whose head is not computed: no scores of a reranker or "
                   "classifier, no sparse weights"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelConfig> LoadModelConfig(const std::string& folder,
                                            int32_t max_len_flag) {
  ModelConfig config;
  int64_t pooling_width = 0;
  absl::Status status = ReadSentenceModules(folder, &config, &pooling_width);
  if (!status.ok()) return status;

  const std::string adapter =
      JoinName(config.transformer_folder, "adapter_config.json");
  const absl::StatusOr<bool> has_adapter = FileExists(folder, adapter);
  if (!has_adapter.ok()) return has_adapter.status();
  if (*has_adapter) {
    return absl::UnimplementedError(
        absl::StrCat(adapter,
                     ": adapters are not supported; merge the adapter into the "
                     "weights and remove the file"));
  }
  const std::string name = JoinName(config.transformer_folder, "config.json");
  const absl::StatusOr<Json> json = ReadJsonObject(folder, name);
  if (!json.ok()) return json.status();
  const JsonFields fields(*json, name);
  Take(fields.String("model_type"), &config.model_type, &status);
  if (!status.ok()) return status;
  const Architecture* architecture = FindArchitecture(config.model_type);
  if (architecture == nullptr) {
    return Unsupported(fields, "model_type",
                       absl::StrCat("supported: ", SupportedArchitectures()));
  }
  const Settings settings(fields, *architecture);
  status = CheckPlainEncoder(settings);
  if (status.ok()) status = ReadPositionScheme(settings, &config);
  if (status.ok()) status = ReadSizes(settings, &config);
  if (!status.ok()) return status;
  const absl::StatusOr<bool> has_modules = HasModules(folder);
  if (!has_modules.ok()) return has_modules.status();
  if (!*has_modules) status = WarnOfHead(fields, &config);
  if (!status.ok()) return status;
  const absl::StatusOr<TransformerSettings> transformer =
      *has_modules ? ReadTransformerSettings(folder, config.transformer_folder)
                   : TransformerSettings();
  if (!transformer.ok()) return transformer.status();
  config.lowercase = transformer->lowercase;
  status = SetMaxLen(folder, settings, *transformer, max_len_flag, &config);
  if (!status.ok()) return status;
  if (*has_modules && transformer->file.empty()) {
    config.warnings.push_back(absl::StrCat(
        "there is modules.json, but no sentence_bert_config.json, which "
        "usually sets how long a text may be: max_len is ",
        config.max_len));
  }
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
