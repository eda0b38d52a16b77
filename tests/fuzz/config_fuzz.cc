// A model folder's JSON files, the index of its shards with one of them, and
// its manifest. The input is cut at lines of three dashes into the files of
// kFiles; a part that is empty is a file that is not there. Whatever they say,
// the answer is a status, or a config whose every number is in its limits,
// tensors that are where the index says, and a count of the files that match.
#include <algorithm>
#include <cstdint>
#include <string>

#include "engine/checkpoint/checkpoint_files.h"
#include "engine/checkpoint/model_config.h"
#include "engine/io/manifest.h"
#include "tests/fuzz/model_files.h"
#include "tests/fuzz/require.h"

namespace {

constexpr const char* kFiles[] = {
    "config.json",
    "modules.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "tokenizer_config.json",
    "2_Dense/config.json",
    "model.safetensors.index.json",
    "model-1.safetensors",
    encoderd::kManifestName,
};

using encoderd::FuzzFolder;
using encoderd::Put;
using encoderd::Require;

// Each module takes what the one before it returns.
void CheckHead(const encoderd::ModelConfig& config) {
  int32_t width = config.hidden_size;
  for (const encoderd::HeadModule& module : config.head) {
    Require(module.in == width && module.out >= 1);
    width = module.out;
  }
  Require(config.dimensions() == width);
}

void CheckWeightFiles() {
  const auto files = encoderd::CheckpointFiles::Open(FuzzFolder(), "");
  Require(files.ok() || !files.status().message().empty());
  if (!files.ok()) return;
  for (const auto& [name, tensor] : files->tensors())
    Require(tensor.file != nullptr && tensor.entry->name == name);
}

void CheckManifestFile(bool is_there) {
  const auto listed = encoderd::CheckManifest(FuzzFolder());
  Require(listed.ok() || !listed.status().message().empty());
  Require(!listed.ok() || (*listed > 0) == is_there);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool made = [] {
    for (const char* below : {"1_Pooling", "2_Dense"})
      encoderd::MakeFuzzFolder(below);
    return true;
  }();
  Require(made);
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::string cut = "\n---\n";
  size_t begin = 0;
  std::string part;
  for (const char* file : kFiles) {
    const size_t end = std::min(input.find(cut, begin), input.size());
    part = input.substr(begin, end - begin);
    Put(file, part);
    begin = std::min(end + cut.size(), input.size());
  }
  CheckWeightFiles();
  CheckManifestFile(/*is_there=*/!part.empty());
  for (int32_t flag : {0, 100}) {
    const auto config = encoderd::LoadModelConfig(FuzzFolder(), flag);
    if (!config.ok()) {
      Require(!config.status().message().empty());
      continue;
    }
    Require(config->num_hidden_layers > 0 && config->hidden_size > 0);
    Require(config->head_size() * config->num_attention_heads ==
            config->hidden_size);
    Require(config->max_len >= 1);
    Require(config->max_len + config->position_offset <=
            config->max_position_embeddings);
    Require(flag == 0 || config->max_len == flag);
    Require(config->layers.size() ==
            static_cast<size_t>(config->num_hidden_layers));
    for (const encoderd::LayerSpec& layer : config->layers) {
      Require(layer.reach.left >= -1 && layer.reach.right >= -1);
      Require(layer.rotation < static_cast<int32_t>(config->rotations.size()));
    }
    for (const encoderd::Rotation& rotation : config->rotations)
      Require(rotation.theta >= 1 && rotation.dims <= config->head_size());
    Require(config->layer_norm_eps > 0 && config->layer_norm_eps <= 1);
    Require(config->default_prompt_name.empty() ||
            config->prompts.count(config->default_prompt_name) == 1);
    CheckHead(*config);
  }
  return 0;
}
