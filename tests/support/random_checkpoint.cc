#include "tests/support/random_checkpoint.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/checkpoint/architecture.h"
#include "engine/checkpoint/model_config.h"

namespace encoderd {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kStep = 0x9E3779B97F4A7C15;

uint64_t NameHash(const std::string& name) {
  uint64_t value = 0xCBF29CE484222325;
  for (unsigned char byte : name) value = (value ^ byte) * 0x100000001B3;
  return value;
}

// Signed integers of `bits` bits, from splitmix64.
class Draws {
 public:
  Draws(uint64_t seed, const std::string& name, int bits)
      : state_(NameHash(name) ^ (seed * kStep)), bits_(bits) {}

  int64_t Next() {
    uint64_t z = state_ += kStep;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return static_cast<int64_t>((z ^ (z >> 31)) >> (64 - bits_)) -
           (int64_t{1} << (bits_ - 1));
  }

 private:
  uint64_t state_;
  int bits_;
};

int WeightScale(int64_t fan_in) {
  int s = 0;
  while (3 * (int64_t{1} << (2 * (s + 1))) <= fan_in) ++s;
  return s;
}

// The bits of a float that is a normal half or zero.
uint16_t HalfBits(float value) {
  if (value == 0) return 0;
  int exponent;
  const float fraction = std::frexp(std::fabs(value), &exponent);
  const int mantissa = static_cast<int>(std::ldexp(fraction, 11)) - 1024;
  return static_cast<uint16_t>((value < 0 ? 0x8000 : 0) |
                               (exponent + 14) << 10 | mantissa);
}

std::string ValueBytes(const std::string& dtype,
                       const std::vector<float>& values) {
  const std::string floats = FloatBytes(values);
  if (dtype == "F32") return floats;
  std::string halves;
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == "BF16") {
      halves += floats.substr(4 * i + 2, 2);
    } else {
      const uint16_t bits = HalfBits(values[i]);
      halves.push_back(static_cast<char>(bits));
      halves.push_back(static_cast<char>(bits >> 8));
    }
  }
  return halves;
}

TensorToWrite MakeTensor(const CheckpointSpec& spec, Role role,
                         const std::string& name, std::vector<int64_t> shape,
                         int64_t fan_in) {
  int bits = 24;
  int gain_bits = 16;
  if (spec.dtype == "F16") bits = 11, gain_bits = 8;
  if (spec.dtype == "BF16") bits = 8, gain_bits = 5;
  const bool gain = IsNorm(role) && absl::EndsWith(name, ".weight");
  int scale = 0;
  if (gain) {
    scale = 3;
    bits = gain_bits;
  } else if (shape.size() == 1) {
    scale = 3;
  } else if (role != Role::kToken && role != Role::kPosition &&
             role != Role::kSegment) {
    scale = WeightScale(fan_in);
  }
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  Draws draws(spec.seed, name, bits);
  std::vector<float> values(count);
  for (float& value : values) {
    value = (gain ? 1.0f : 0.0f) +
            std::ldexp(static_cast<float>(draws.Next()), -(bits - 1 + scale));
  }
  return {spec.prefix + name, spec.dtype, std::move(shape),
          ValueBytes(spec.dtype, values)};
}

void WriteFile(const std::string& folder, const std::string& name,
               const std::string& content) {
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::string Vocabulary(int64_t size) {
  const std::string characters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::vector<std::string> words = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                    "[MASK]"};
  for (char c : characters) words.push_back(std::string(1, c));
  for (char c : characters)
    words.push_back(absl::StrCat("##", std::string(1, c)));
  const int64_t fixed = static_cast<int64_t>(words.size());
  std::string text;
  for (const std::string& word : words) absl::StrAppend(&text, word, "\n");
  for (int64_t i = 0; i < size - fixed; ++i) {
    absl::StrAppend(&text, "word", i, "\n");
  }
  return text;
}

// A JSON file of this folder; ends the program when it cannot be read.
Json ReadTable(const std::string& name) {
  std::ifstream file(absl::StrCat(ENCODERD_SOURCE_DIR "/tests/support/", name));
  Json table = Json::parse(file, nullptr, false);
  if (table.is_discarded()) {
    std::cerr << "cannot read tests/support/" << name << "\n";
    std::abort();
  }
  return table;
}

// What the tensor table needs to know.
ModelConfig Sizes(const CheckpointSpec& spec) {
  const Architecture& architecture = *FindArchitecture(spec.model_type);
  const Json settings = Json::parse(spec.config);
  const auto setting = [&](const char* name, int64_t fallback) {
    const auto key = architecture.keys.find(name);
    return static_cast<int32_t>(key == architecture.keys.end()
                                    ? 0
                                    : settings.value(key->second, fallback));
  };
  ModelConfig config;
  config.tensors = architecture.tensors;
  for (TensorRow& row : config.tensors.rows) {
    if (!row.bias_key.empty()) row.bias = settings.value(row.bias_key, false);
  }
  config.vocab_size = static_cast<int32_t>(spec.vocab);
  config.max_position_embeddings = static_cast<int32_t>(spec.positions);
  config.type_vocab_size = static_cast<int32_t>(spec.segments);
  config.hidden_size = static_cast<int32_t>(spec.hidden);
  config.intermediate_size = static_cast<int32_t>(spec.inner);
  config.num_attention_heads = static_cast<int32_t>(spec.heads);
  config.attention_bias_rows = setting("attention_bias_rows", 0);
  config.embedding_size = setting("embedding_size", spec.hidden);
  if (config.embedding_size == spec.hidden && !architecture.always_projects)
    config.embedding_size = 0;
  config.num_hidden_layers = static_cast<int32_t>(spec.layers);
  if (architecture.keys.count("num_hidden_groups") > 0) {
    config.inner_group_num = setting("inner_group_num", 1);
    const int32_t groups = setting("num_hidden_groups", spec.layers);
    config.layer_weights = {groups * config.inner_group_num - 1};
  }
  return config;
}

Json CheckpointConfig(const CheckpointSpec& spec) {
  const Json values = {{"num_hidden_layers", spec.layers},
                       {"hidden_size", spec.hidden},
                       {"num_attention_heads", spec.heads},
                       {"intermediate_size", spec.inner},
                       {"vocab_size", spec.vocab},
                       {"max_position_embeddings", spec.positions},
                       {"type_vocab_size", spec.segments},
                       {"hidden_act", spec.act},
                       {"layer_norm_eps", spec.eps}};
  const auto& keys = FindArchitecture(spec.model_type)->keys;
  Json config = {{"model_type", spec.model_type}};
  for (const auto& value : values.items()) {
    const auto key = keys.find(value.key());
    if (key != keys.end()) config[key->second] = value.value();
  }
  config.update(Json::parse(spec.config));
  return config;
}

}  // namespace

std::vector<CheckpointSpec> AllCheckpointSpecs() {
  const Json list = ReadTable("checkpoints.json");
  std::vector<CheckpointSpec> specs;
  for (const Json& row : list) {
    specs.push_back({row["name"], row["seed"], row["dtype"], row["prefix"],
                     row["shards"], row["layers"], row["hidden"], row["heads"],
                     row["inner"], row["vocab"], row["positions"],
                     row["segments"], row["act"], row["eps"], row["pooling"],
                     row["normalize"], row.value("model_type", "bert"),
                     row.value("config", Json::object()).dump()});
  }
  return specs;
}

CheckpointSpec CheckpointSpecOf(const std::string& name) {
  for (CheckpointSpec& spec : AllCheckpointSpecs()) {
    if (spec.name == name) return spec;
  }
  std::cerr << "no checkpoint " << name << " in checkpoints.json\n";
  std::abort();
}

std::vector<TensorToWrite> CheckpointTensors(const CheckpointSpec& spec) {
  const ModelConfig config = Sizes(spec);
  std::vector<TensorToWrite> tensors;
  for (const CheckpointModule& module : ModulesOf(config)) {
    const Role role = module.row->role;
    tensors.push_back(MakeTensor(spec, role, module.name + ".weight",
                                 module.stored_shape(), module.in));
    if (!module.row->bias) continue;
    tensors.push_back(
        MakeTensor(spec, role, module.name + ".bias", {module.out}, 0));
  }
  return tensors;
}

void WriteWeights(const std::vector<TensorToWrite>& tensors, int shards,
                  const std::string& folder) {
  if (shards == 1) {
    WriteFile(folder, "model.safetensors", SafetensorsBytes(tensors));
    return;
  }
  Json weight_map;
  for (int shard = 0; shard < shards; ++shard) {
    const std::string name =
        absl::StrFormat("model-%05d-of-%05d.safetensors", shard + 1, shards);
    std::vector<TensorToWrite> own;
    for (size_t i = shard; i < tensors.size(); i += shards) {
      own.push_back(tensors[i]);
      weight_map[tensors[i].name] = name;
    }
    WriteFile(folder, name, SafetensorsBytes(own));
  }
  WriteFile(folder, "model.safetensors.index.json",
            Json{{"weight_map", weight_map}}.dump());
}

void WriteCheckpoint(const CheckpointSpec& spec, const std::string& folder) {
  WriteWeights(CheckpointTensors(spec), spec.shards, folder);
  WriteFile(folder, "config.json", CheckpointConfig(spec).dump());
  Json modules = Json::array();
  const auto module = [&](const std::string& type, const std::string& path) {
    modules.push_back(
        {{"type", "sentence_transformers.models." + type}, {"path", path}});
  };
  module("Transformer", "");
  module("Pooling", "1_Pooling");
  if (spec.normalize) module("Normalize", "2_Normalize");
  WriteFile(folder, "modules.json", modules.dump());
  WriteFile(folder, "1_Pooling/config.json",
            Json{{"embedding_dimension", spec.hidden},
                 {"pooling_mode", spec.pooling == "mean_sqrt_len"
                                      ? "mean_sqrt_len_tokens"
                                      : spec.pooling}}
                .dump());
  WriteFile(folder, "vocab.txt", Vocabulary(spec.vocab));
  Json tokenizer = {{"tokenizer_class", "BertTokenizer"},
                    {"do_lower_case", true}};
  if (spec.model_type == "gpt2")  // which would add tokens for segments
    tokenizer["model_input_names"] = {"input_ids", "attention_mask"};
  WriteFile(folder, "tokenizer_config.json", tokenizer.dump());
}

}  // namespace encoderd
