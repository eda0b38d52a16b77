#include "engine/checkpoint/layers.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace encoderd {
namespace {

constexpr char kTypes[] = "layer_types";
constexpr char kFull[] = "full_attention";
constexpr char kWindow[] = "sliding_attention";
constexpr char kRope[] = "rope_parameters";
constexpr char kType[] = "rope_type";
constexpr char kShare[] = "partial_rotary_factor";
constexpr double kMaxTheta = 1e30;

// Of each layer, whether it sees a window only.
absl::StatusOr<std::vector<bool>> WindowLayers(const Settings& settings,
                                               int32_t layers) {
  std::vector<bool> window(layers);
  const JsonFields& fields = settings.fields();
  if (const Json* types = fields.Find(kTypes); types != nullptr) {
    if (!types->is_array() || types->size() != window.size())
      return fields.Bad(kTypes, absl::StrCat("expected a list of ", layers));
    for (size_t l = 0; l < window.size(); ++l) {
      window[l] = (*types)[l] == kWindow;
      if (!window[l] && (*types)[l] != kFull) {
        return absl::UnimplementedError(absl::StrCat(
            fields.name(), ": ", kTypes, "[", l, "] ", ShowJson((*types)[l]),
            " is not supported; supported: ", kFull, ", ", kWindow));
      }
    }
    return window;
  }
  const absl::StatusOr<int64_t> period =
      settings.Int("full_attention_period", 1, int64_t{1} << 20);
  if (!period.ok()) return period.status();
  for (size_t l = 0; l < window.size(); ++l)
    window[l] = static_cast<int64_t>(l) % *period != 0;
  return window;
}

// That these parameters of a rotation change nothing but its theta.
absl::Status CheckUnscaled(const JsonFields& rope) {
  for (const char* key : {kType, "type"}) {  // the current key, an older one
    const bool is_used =
        absl::string_view(key) == kType || !rope.object().contains(kType);
    if (is_used && rope.IsNull(key))
      return Unsupported(rope, key, "supported: default");
    const absl::StatusOr<std::string> type = rope.String(key, "default");
    if (!type.ok()) return type.status();
    if (*type != "default") return Unsupported(rope, key, "supported: default");
  }
  if (const Json* share = rope.Find(kShare); share != nullptr && *share != 1.0)
    return Unsupported(rope, kShare, "supported: 1.0");
  return absl::OkStatus();
}

// rope_scaling, whose members transformers adds to those of every kind.
absl::Status CheckScaling(const JsonFields& fields) {
  constexpr char kScaling[] = "rope_scaling";
  const Json* const all = fields.Find(kScaling);
  if (all == nullptr) return absl::OkStatus();
  if (!all->is_object()) return fields.Bad(kScaling, "expected an object");
  const JsonFields scaling(*all, absl::StrCat(fields.name(), ", ", kScaling));
  const absl::Status status = CheckUnscaled(scaling);
  if (!status.ok()) return status;
  for (const auto& member : all->items()) {
    const std::string& key = member.key();
    if (key != kType && key != "type" && key != kShare)
      return Unsupported(scaling, key, "");
  }
  return absl::OkStatus();
}

// The theta of the layers of a kind.
absl::StatusOr<double> Theta(const Settings& settings, const char* kind,
                             const char* setting) {
  const JsonFields& fields = settings.fields();
  const absl::StatusOr<double> plain = settings.Number(setting, 1, kMaxTheta);
  const Json* all = fields.Find(kRope);
  if (!plain.ok() || all == nullptr) return plain;
  if (!all->is_object()) return fields.Bad(kRope, "expected an object");
  const std::string name = absl::StrCat(fields.name(), ", ", kRope);
  for (const auto& member : all->items()) {
    const std::string& key = member.key();
    if (key == kFull || key == kWindow) continue;
    return Unsupported(JsonFields(*all, name), key,
                       absl::StrCat("supported: ", kFull, ", ", kWindow));
  }
  if (!all->contains(kind) || all->at(kind).is_null()) return plain;
  if (!all->at(kind).is_object())
    return fields.Bad(kRope, "expected objects by kind of layer");
  const JsonFields rope(all->at(kind), absl::StrCat(name, ".", kind));
  const absl::Status status = CheckUnscaled(rope);
  if (!status.ok()) return status;
  if (rope.IsNull("rope_theta"))
    return rope.Bad("rope_theta", "expected a number");
  return rope.Number("rope_theta", 1, kMaxTheta, *plain);
}

absl::Status ReadWindows(const Settings& settings, ModelConfig* config) {
  const absl::StatusOr<std::vector<bool>> window =
      WindowLayers(settings, config->num_hidden_layers);
  if (!window.ok()) return window.status();
  int32_t tokens = 0;
  absl::Status status;
  Take(settings.Int("window", 1, int64_t{1} << 28), &tokens, &status);
  for (size_t l = 0; l < window->size(); ++l) {
    if ((*window)[l]) config->layers[l].reach = {tokens / 2, tokens / 2};
  }
  return status;
}

absl::Status ReadRotations(const Settings& settings, ModelConfig* config) {
  if (config->head_size() % 2 != 0) {
    return Unsupported(
        settings.fields(), settings.key("num_attention_heads"),
        absl::StrCat("a rotation requires heads of an even size, not of ",
                     config->head_size()));
  }
  absl::Status status = CheckScaling(settings.fields());
  if (!status.ok()) return status;
  const int32_t dims = config->head_size();
  if (const Json* head_dim = settings.fields().Find("head_dim");
      head_dim != nullptr && *head_dim != dims) {
    return settings.fields().Bad(
        "head_dim", absl::StrCat("expected the hidden size by heads, ", dims));
  }
  double full = 0, window = 0;
  Take(Theta(settings, kFull, "full_theta"), &full, &status);
  // Null is that of the other layers, and not the default.
  const bool same = settings.fields().IsNull(settings.key("window_theta"));
  Take(Theta(settings, kWindow, same ? "full_theta" : "window_theta"), &window,
       &status);
  config->rotations = {{full, dims}, {window, dims}};
  for (LayerSpec& layer : config->layers)
    layer.rotation = layer.reach == Reach() ? 0 : 1;
  return status;
}

}  // namespace

absl::Status ReadLayers(const Settings& settings, ModelConfig* config) {
  config->layers.assign(config->num_hidden_layers, LayerSpec());
  for (LayerSpec& layer : config->layers) {
    if (settings.architecture().causal) layer.reach.right = 0;
  }
  absl::Status status;
  if (!settings.key("window").empty()) status = ReadWindows(settings, config);
  if (status.ok() && config->position_scheme == &RotaryPositions())
    status = ReadRotations(settings, config);
  return status;
}

}  // namespace encoderd
