#include "engine/checkpoint/tensor_table.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/checkpoint/model_config.h"

namespace encoderd {
namespace {

constexpr std::pair<const char*, Role> kRoles[] = {
    {"token", Role::kToken},
    {"position", Role::kPosition},
    {"segment", Role::kSegment},
    {"embedding_norm", Role::kEmbeddingNorm},
    {"projection", Role::kProjection},
    {"attention_bias", Role::kAttentionBias},
    {"qkv", Role::kQkv},
    {"attention_output", Role::kAttentionOutput},
    {"attention_norm", Role::kAttentionNorm},
    {"feed_forward_in", Role::kFeedForwardIn},
    {"feed_forward_out", Role::kFeedForwardOut},
    {"feed_forward_norm", Role::kFeedForwardNorm},
    {"final_norm", Role::kFinalNorm},
};

int64_t SizeOf(char letter, const ModelConfig& config) {
  switch (letter) {
    case 'V':
      return config.vocab_size;
    case 'P':
      return config.position_scheme->has_table()
                 ? config.max_position_embeddings
                 : 0;
    case 'S':
      return config.type_vocab_size;
    case 'E':
      return config.table_columns();
    case 'X':
      return config.embedding_size;
    case 'H':
      return config.hidden_size;
    case 'F':
      return config.intermediate_size;
    case 'A':
      return config.num_attention_heads;
    case 'R':
      return config.attention_bias_rows;
  }
  std::abort();  // a test reads every row of architectures.json
}

std::string NameIn(const std::string& name, int32_t layer, int32_t inner) {
  return absl::StrReplaceAll(name, {{"{layer}", absl::StrCat(layer)},
                                    {"{group}", absl::StrCat(layer / inner)},
                                    {"{inner}", absl::StrCat(layer % inner)}});
}

void Append(const TensorRow& row, int32_t layer, const ModelConfig& config,
            std::vector<CheckpointModule>* modules) {
  const std::pair<std::string, std::string> shape =
      absl::StrSplit(row.shape, absl::MaxSplits(',', 1));
  const int64_t out = ExtentOf(shape.first, config);
  const int64_t in = shape.second.empty() ? 1 : ExtentOf(shape.second, config);
  if (out == 0 || in == 0 || (row.not_first && layer == 0)) return;
  modules->push_back(
      {&row, layer, NameIn(row.name, layer, config.inner_group_num), out, in});
}

WeightSize::Kind KindOf(Role role) {
  if (IsNorm(role)) return WeightSize::Kind::kNorm;
  if (role == Role::kToken || role == Role::kPosition || role == Role::kSegment)
    return WeightSize::Kind::kTable;
  return WeightSize::Kind::kLinear;
}

}  // namespace

bool ParseRole(absl::string_view name, Role* role) {
  for (const auto& [known, parsed] : kRoles) {
    if (name != known) continue;
    *role = parsed;
    return true;
  }
  return false;
}

std::set<std::string> IgnoredNames(const ModelConfig& config) {
  std::set<std::string> names;
  for (const std::string& name : config.tensors.ignored) {
    for (int32_t l = 0; l < config.distinct_layers(); ++l)
      names.insert(NameIn(name, l, config.inner_group_num));
  }
  return names;
}

int64_t ExtentOf(absl::string_view text, const ModelConfig& config) {
  const int64_t size = SizeOf(text.back(), config);
  return text.size() == 1 ? size : (text.front() - '0') * size;
}

bool IsNorm(Role role) {
  return role == Role::kEmbeddingNorm || role == Role::kAttentionNorm ||
         role == Role::kFeedForwardNorm || role == Role::kFinalNorm;
}

std::vector<int64_t> CheckpointModule::stored_shape() const {
  if (IsNorm(row->role)) return {out};
  if (row->transposed) return {in, out};
  return {out, in};
}

std::vector<CheckpointModule> ModulesOf(const ModelConfig& config) {
  const std::vector<TensorRow>& rows = config.tensors.rows;
  std::vector<CheckpointModule> modules;
  bool layers_done = false;
  for (const TensorRow& row : rows) {
    if (!row.in_layer) Append(row, 0, config, &modules);
    if (!row.in_layer || layers_done) continue;
    layers_done = true;
    for (int32_t l = 0; l < config.distinct_layers(); ++l) {
      for (const TensorRow& in_layer : rows) {
        if (in_layer.in_layer) Append(in_layer, l, config, &modules);
      }
    }
  }
  return modules;
}

std::vector<WeightSize> WeightSizesOf(const ModelConfig& config) {
  using Kind = WeightSize::Kind;
  std::vector<WeightSize> sizes;
  const TensorRow* before = nullptr;
  for (const CheckpointModule& module : ModulesOf(config)) {
    const Role role = module.row->role;
    if (role == Role::kAttentionBias) continue;  // prepared by distance
    if (before != nullptr && before->role == role) {
      sizes.back().rows += module.out;
    } else {
      sizes.push_back(
          {KindOf(role), module.out, module.in, role == Role::kFeedForwardIn});
    }
    before = module.row;
  }
  const int64_t positions = config.max_position_embeddings;
  const PositionScheme& scheme = *config.position_scheme;
  if (scheme.adds_rows() && !scheme.has_table())
    sizes.push_back({Kind::kTable, positions, config.table_columns()});
  if (scheme.biases_attention()) {
    sizes.push_back({Kind::kFloats, config.num_attention_heads,
                     2 * int64_t{config.max_len} - 1});
  }
  for (const Rotation& rotation : config.rotations)
    sizes.insert(sizes.end(), 2, {Kind::kFloats, positions, rotation.dims / 2});
  return sizes;
}

}  // namespace encoderd
