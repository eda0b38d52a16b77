// A model folder's JSON files, the index of its shards with one of them, and
// its manifest. The input is cut at lines of three dashes into the files of
// kFiles; a part that is empty is a file that is not there. Whatever they say,
// the answer is a status, or a config whose every number is in its limits,
// tensors that are where the index says, and a count of the files that match.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "engine/checkpoint/checkpoint_files.h"
#include "engine/checkpoint/model_config.h"
#include "engine/io/manifest.h"

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
constexpr const char* kSubfolders[] = {"/1_Pooling", "/2_Dense"};

void Require(bool condition) {
  if (!condition) abort();
}

// In memory where the system has such a folder: a run writes millions of files.
std::string MakeFolder() {
  for (const char* parent : {"/dev/shm", "/tmp"}) {
    std::string folder = std::string(parent) + "/encoderd-fuzz-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) continue;
    for (const char* below : kSubfolders)
      Require(mkdir((folder + below).c_str(), 0700) == 0);
    return folder;
  }
  abort();
}

void RemoveFolder(const std::string& folder) {
  for (const char* file : kFiles) unlink((folder + "/" + file).c_str());
  for (const char* below : kSubfolders) rmdir((folder + below).c_str());
  rmdir(folder.c_str());
}

const std::string& Folder() {
  static const std::string& folder = *new std::string(MakeFolder());
  static const int registered = atexit([] { RemoveFolder(folder); });
  Require(registered == 0);
  return folder;
}

void Put(const std::string& path, const std::string& content) {
  if (content.empty()) {
    unlink(path.c_str());
    return;
  }
  FILE* file = fopen(path.c_str(), "wb");
  Require(file != nullptr);
  Require(fwrite(content.data(), 1, content.size(), file) == content.size());
  Require(fclose(file) == 0);
}

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
  const auto files = encoderd::CheckpointFiles::Open(Folder(), "");
  Require(files.ok() || !files.status().message().empty());
  if (!files.ok()) return;
  for (const auto& [name, tensor] : files->tensors())
    Require(tensor.file != nullptr && tensor.entry->name == name);
}

void CheckManifestFile(bool is_there) {
  const auto listed = encoderd::CheckManifest(Folder());
  Require(listed.ok() || !listed.status().message().empty());
  Require(!listed.ok() || (*listed > 0) == is_there);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::string cut = "\n---\n";
  size_t begin = 0;
  std::string part;
  for (const char* file : kFiles) {
    const size_t end = std::min(input.find(cut, begin), input.size());
    part = input.substr(begin, end - begin);
    Put(Folder() + "/" + file, part);
    begin = std::min(end + cut.size(), input.size());
  }
  CheckWeightFiles();
  CheckManifestFile(/*is_there=*/!part.empty());
  for (int32_t flag : {0, 100}) {
    const auto config = encoderd::LoadModelConfig(Folder(), flag);
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
