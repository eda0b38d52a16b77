#include "tests/support/random_checkpoint.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

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

TensorToWrite MakeTensor(const CheckpointSpec& spec, const std::string& name,
                         std::vector<int64_t> shape) {
  int bits = 24;
  int gain_bits = 16;
  if (spec.dtype == "F16") bits = 11, gain_bits = 8;
  if (spec.dtype == "BF16") bits = 8, gain_bits = 5;
  const bool gain = absl::EndsWith(name, "LayerNorm.weight") ||
                    absl::EndsWith(name, "layer_norm.weight");
  int scale = 0;
  if (gain) {
    scale = 3;
    bits = gain_bits;
  } else if (shape.size() == 1) {
    scale = 3;
  } else if (!absl::StartsWith(name, "embeddings.")) {
    scale = WeightScale(shape[1]);
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

// The names of an architecture; a row may point to another's.
Json Names(const std::string& model_type) {
  const Json table = ReadTable("checkpoint_names.json");
  const Json& row = table.at(model_type);
  return row.is_string() ? table.at(row.get<std::string>()) : row;
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
  const Json keys = Names(spec.model_type).at("keys");
  Json config = {{"model_type", spec.model_type}};
  for (const auto& value : values.items()) {
    const Json key = keys.value(value.key(), Json(value.key()));
    // null: the architecture has no such key.
    if (key.is_string()) config[key.get<std::string>()] = value.value();
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
  const Json names = Names(spec.model_type);
  const auto name = [&](const char* role) {
    return names.at(role).get<std::string>();
  };
  const Json settings = Json::parse(spec.config);
  const int64_t h = spec.hidden, e = settings.value("embedding_size", h);
  std::vector<TensorToWrite> tensors;
  const auto add = [&](const std::string& tensor, std::vector<int64_t> shape) {
    tensors.push_back(MakeTensor(spec, tensor, std::move(shape)));
  };
  const auto norm = [&](const std::string& module, int64_t size) {
    add(module + ".weight", {size});
    add(module + ".bias", {size});
  };
  const auto linear = [&](const std::string& module, int64_t out, int64_t in) {
    add(module + ".weight", {out, in});
    add(module + ".bias", {out});
  };
  add(name("token") + ".weight", {spec.vocab, e});
  add(name("position") + ".weight", {spec.positions, e});
  if (spec.segments > 0) add(name("segment") + ".weight", {spec.segments, e});
  norm(name("embedding_norm"), e);
  if (names.contains("projection") && (name("projects") == "always" || e != h))
    linear(name("projection"), h, e);
  if (names.contains("attention_bias")) {
    add(name("attention_bias") + ".weight",
        {settings.at("relative_attention_num_buckets").get<int64_t>(),
         spec.heads});
  }
  // Layers with weights of their own: all, or groups of some.
  const int64_t inner = settings.value("inner_group_num", int64_t{1});
  const int64_t layers =
      settings.value("num_hidden_groups", spec.layers) * inner;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const std::string at = absl::StrReplaceAll(
        name("layer"), {{"{layer}", absl::StrCat(layer)},
                        {"{group}", absl::StrCat(layer / inner)},
                        {"{inner}", absl::StrCat(layer % inner)}});
    for (const char* part : {"query", "key", "value"}) {
      linear(at + name(part), h, h);
    }
    linear(at + name("attention_output"), h, h);
    norm(at + name("attention_norm"), h);
    linear(at + name("feed_forward_in"), spec.inner, h);
    linear(at + name("feed_forward_out"), h, spec.inner);
    norm(at + name("output_norm"), h);
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
  WriteFile(folder, "tokenizer_config.json",
            R"({"tokenizer_class": "BertTokenizer", "do_lower_case": true})");
}

}  // namespace encoderd
