#include "engine/checkpoint/sentence_modules.h"

#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/pooling.h"
#include "engine/checkpoint/head_files.h"
#include "engine/checkpoint/settings.h"
#include "engine/io/file.h"
#include "engine/io/json.h"

namespace encoderd {
namespace {

constexpr char kModules[] = "modules.json";
constexpr char kSettings[] = "config_sentence_transformers.json";
constexpr char kPoolingMode[] = "pooling_mode";
constexpr char kIncludePrompt[] = "include_prompt";
// Each text of a request gets a copy.
constexpr size_t kMaxPrompt = 16 << 10;  // bytes

struct Module {
  std::string type;  // last part of the class: "Pooling"
  std::string path;  // below the model folder; empty: the folder itself
};

absl::StatusOr<std::vector<Module>> ReadModules(const std::string& folder) {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(folder, kModules, kSmallJson.max_bytes);
  if (!text.ok()) return text.status();
  const absl::StatusOr<Json> json = ParseJson(*text, kModules, kSmallJson);
  if (!json.ok()) return json.status();
  if (!json->is_array() || json->empty()) {
    return absl::DataLossError("modules.json is not a list of modules");
  }
  std::vector<Module> modules;
  std::set<std::string> names;
  for (const Json& entry : *json) {
    const JsonFields fields(
        entry, absl::StrCat("modules.json, module ", modules.size()));
    const absl::StatusOr<std::string> type = fields.String("type");
    if (!type.ok()) return type.status();
    const absl::StatusOr<std::string> path = fields.String("path", "");
    if (!path.ok()) return path.status();
    // sentence-transformers keeps the last module of a name only.
    if (const Json* name = fields.Find("name"); name != nullptr) {
      if (!name->is_string()) return fields.Bad("name", "expected a string");
      if (!names.insert(name->get<std::string>()).second)
        return fields.Bad("name", "expected one that no other module has");
    }
    if (!absl::StartsWith(*type, "sentence_transformers.")) {
      return absl::UnimplementedError(absl::StrCat(
          "modules.json: the module ", Quote(*type), " is not supported"));
    }
    modules.push_back({type->substr(type->rfind('.') + 1), *path});
  }
  return modules;
}

// As older versions wrote the modes: one boolean for each.
constexpr std::pair<const char*, const char*> kModeSwitches[] = {
    {"pooling_mode_cls_token", "cls"},
    {"pooling_mode_max_tokens", "max"},
    {"pooling_mode_mean_tokens", "mean"},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
    {"pooling_mode_weightedmean_tokens", "weightedmean"},
    {"pooling_mode_lasttoken", "lasttoken"},
};
constexpr const char* kWidths[] = {"word_embedding_dimension",
                                   "embedding_dimension"};

// Every member must be known: sentence-transformers fails at others, too.
absl::Status CheckPoolingMembers(const JsonFields& fields) {
  for (const auto& member : fields.object().items()) {
    const std::string& key = member.key();
    bool known = key == kPoolingMode || key == kIncludePrompt ||
                 absl::c_linear_search(kWidths, key);
    for (const auto& row : kModeSwitches) known |= key == row.first;
    if (known) continue;
    if (!absl::StartsWith(key, kPoolingMode))
      return Unsupported(fields, key, "");
    return absl::UnimplementedError(
        absl::StrCat(fields.name(), ": ", Quote(key),
                     " is a pooling mode that is not supported"));
  }
  return absl::OkStatus();
}

// The modes that a Pooling module's config asks for: a string or list under
// "pooling_mode", or those that are switched on.
absl::StatusOr<std::vector<std::string>> PoolingModes(
    const JsonFields& fields) {
  std::vector<std::string> modes;
  if (const auto mode = fields.object().find(kPoolingMode);
      mode != fields.object().end()) {
    const Json list = mode->is_array() ? *mode : Json::array({*mode});
    for (const Json& name : list) {
      if (!name.is_string()) return fields.Bad(kPoolingMode, "expected a name");
      modes.push_back(name.get<std::string>());
    }
    if (modes.empty()) return fields.Bad(kPoolingMode, "expected a name");
    return modes;
  }
  bool says_nothing = true;
  for (const auto& [key, name] : kModeSwitches) {
    says_nothing &= !fields.object().contains(key);
    const absl::StatusOr<bool> on = fields.Bool(key, false);
    if (!on.ok()) return on.status();
    if (*on) modes.push_back(name);
  }
  for (const char* key : kWidths)
    says_nothing &= !fields.object().contains(key);
  if (says_nothing) return fields.Bad(kPoolingMode, "expected a name");
  if (modes.empty()) modes.push_back("mean");
  return modes;
}

// A missing file means an incomplete copy.
absl::Status NamedByModules(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return absl::NotFoundError(
      absl::StrCat(status.message(),
                   "; modules.json names its folder: fetch the model "
                   "again"));
}

absl::Status ReadPooling(const std::string& folder, const std::string& path,
                         ModelConfig* config, int64_t* width) {
  const std::string name = JoinName(path, "config.json");
  const absl::StatusOr<Json> json = ReadJsonObject(folder, name, kSmallJson);
  if (!json.ok()) return json.status();
  const JsonFields fields(*json, name);
  absl::Status status = CheckPoolingMembers(fields);
  if (!status.ok()) return status;
  const absl::StatusOr<std::vector<std::string>> modes = PoolingModes(fields);
  if (!modes.ok()) return modes.status();
  if (modes->size() > 1) {
    return absl::UnimplementedError(
        absl::StrCat(name, ": the pooling modes ", absl::StrJoin(*modes, " + "),
                     " combined are not supported; choose one"));
  }
  const std::string mode = modes->front() == "mean_sqrt_len_tokens"
                               ? "mean_sqrt_len"
                               : modes->front();
  const absl::StatusOr<Pooling> pooling = PoolingFromName(mode);
  if (!pooling.ok()) {
    return absl::UnimplementedError(absl::StrCat(
        name, ": the pooling mode ", Quote(mode), " is not supported"));
  }
  config->pooling = *pooling;
  const absl::StatusOr<bool> include = fields.Bool(kIncludePrompt, true);
  if (!include.ok()) return include.status();
  if (!*include || fields.IsNull(kIncludePrompt)) {
    return absl::UnimplementedError(
        absl::StrCat(name,
                     ": include_prompt false or null, which leaves the tokens "
                     "of a prompt out "
                     "of the vector, is not supported"));
  }
  for (const char* key : kWidths) {
    Take(fields.Int(key, 1, std::numeric_limits<int32_t>::max(), *width), width,
         &status);
  }
  return status;
}

bool IsHeadModule(absl::string_view type) {
  return type == "Dense" || type == "LayerNorm" || type == "Dropout" ||
         type == "Normalize";
}

absl::Status ReadHeadModule(const std::string& folder, const Module& module,
                            ModelConfig* config) {
  if (module.type == "Dropout") return absl::OkStatus();  // only in training
  absl::StatusOr<HeadModule> head =
      module.type == "Normalize" ? ReadNormalizeConfig(folder, module.path)
      : module.type == "Dense"   ? ReadDenseConfig(folder, module.path)
                                 : ReadLayerNormConfig(folder, module.path);
  if (!head.ok()) return head.status();
  config->head.push_back(*std::move(head));
  return absl::OkStatus();
}

absl::Status ReadPrompts(const std::string& folder, ModelConfig* config) {
  const absl::StatusOr<Json> json =
      ReadOptionalJsonObject(folder, kSettings, kSmallJson);
  if (!json.ok()) return json.status();
  const JsonFields fields(*json, kSettings);
  const absl::StatusOr<std::string> kind =
      fields.String("model_type", "SentenceTransformer");
  if (!kind.ok()) return kind.status();
  if (*kind != "SentenceTransformer") {
    return absl::UnimplementedError(
        absl::StrCat(kSettings, ": a model of the kind ", Quote(*kind),
                     " is not supported, only SentenceTransformer"));
  }
  if (const Json* cut = fields.Find("truncate_dim"); cut != nullptr) {
    const absl::StatusOr<int64_t> values =
        fields.Int("truncate_dim", 1, std::numeric_limits<int32_t>::max());
    if (!values.ok()) return values.status();
    return absl::UnimplementedError(
        absl::StrCat(kSettings, ": truncate_dim ", *values,
                     " is not supported; remove it, and let clients ask for ",
                     *values, " dimensions"));
  }
  if (const Json* prompts = fields.Find("prompts"); prompts != nullptr) {
    if (!prompts->is_object())
      return fields.Bad("prompts", "expected an object");
    const JsonFields texts(*prompts, absl::StrCat(kSettings, ", prompts"));
    for (const auto& member : prompts->items()) {
      const absl::StatusOr<std::string> text = texts.String(member.key(), "");
      if (!text.ok()) return text.status();
      if (text->size() > kMaxPrompt) {
        return texts.Bad(member.key(), absl::StrCat("expected at most ",
                                                    kMaxPrompt, " bytes"));
      }
      config->prompts[member.key()] = *text;
    }
  }
  constexpr char kDefault[] = "default_prompt_name";
  absl::StatusOr<std::string> chosen = fields.String(kDefault, "");
  if (!chosen.ok()) return chosen.status();
  const bool is_there = config->prompts.count(*chosen) > 0;
  // A request cannot name it either: there an empty name chooses the default.
  if (chosen->empty() && is_there && fields.Find(kDefault) != nullptr)
    return Unsupported(fields, kDefault, "name the prompt");
  // sentence-transformers has these two, empty, in every model.
  if (!is_there && (*chosen == "query" || *chosen == "document")) {
    chosen->clear();
  } else if (!is_there && !chosen->empty()) {
    return fields.Bad(kDefault, "expected the name of a prompt");
  }
  config->default_prompt_name = *std::move(chosen);
  return absl::OkStatus();
}

}  // namespace

std::string JoinName(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : absl::StrCat(folder, "/", name);
}

absl::StatusOr<bool> HasModules(const std::string& folder) {
  return FileExists(folder, kModules);
}

absl::Status ReadSentenceModules(const std::string& folder, ModelConfig* config,
                                 int64_t* pooling_width) {
  *pooling_width = 0;
  absl::Status status = ReadPrompts(folder, config);
  if (!status.ok()) return status;
  const absl::StatusOr<bool> has_modules = HasModules(folder);
  if (!has_modules.ok()) return has_modules.status();
  if (!*has_modules) {
    config->warnings.push_back(
        "no modules.json: vectors are the unnormalized mean of the token "
        "states, and prompts and sentence_bert_config.json are ignored, as in "
        "sentence-transformers");
    config->prompts.clear();
    config->default_prompt_name.clear();
    return absl::OkStatus();
  }
  const absl::StatusOr<std::vector<Module>> modules = ReadModules(folder);
  if (!modules.ok()) return modules.status();
  // Transformer, Pooling, then any of the modules of a head.
  size_t stage = 0;
  for (const Module& module : *modules) {
    if (stage == 0 && module.type == "Transformer") {
      config->transformer_folder = module.path;
    } else if (stage == 1 && module.type == "Pooling") {
      status = ReadPooling(folder, module.path, config, pooling_width);
    } else if (stage >= 2 && IsHeadModule(module.type)) {
      status = ReadHeadModule(folder, module, config);
    } else {
      status = absl::UnimplementedError(absl::StrCat(
          "modules.json: the module ", Quote(module.type), " at place ", stage,
          " is not supported; expected Transformer, Pooling and optionally "
          "Dense, "
          "LayerNorm, Dropout or Normalize"));
    }
    if (!status.ok()) return NamedByModules(status);
    ++stage;
  }
  // What the caller may switch off is a Normalize at the end.
  while (!config->head.empty() &&
         config->head.back().kind == HeadModule::Kind::kNormalize) {
    config->normalize = true;
    config->head.pop_back();
  }
  if (stage < 2) {
    return absl::UnimplementedError(
        "modules.json: a model without a Pooling module is not supported");
  }
  return absl::OkStatus();
}

}  // namespace encoderd
