// A model folder's JSON files. The input is cut at lines of three dashes into
// config.json, modules.json, 1_Pooling/config.json, sentence_bert_config.json,
// config_sentence_transformers.json and tokenizer_config.json; a part that is
// empty is a file that is not there. Whatever they say, the answer is a status,
// or a config whose every number is in its limits.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "engine/checkpoint/model_config.h"

namespace {

constexpr const char* kFiles[] = {
    "config.json",
    "modules.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "tokenizer_config.json",
};

void Require(bool condition) {
  if (!condition) abort();
}

// In memory where the system has such a folder: a run writes millions of files.
std::string MakeFolder() {
  for (const char* parent : {"/dev/shm", "/tmp"}) {
    std::string folder = std::string(parent) + "/encoderd-fuzz-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) continue;
    Require(mkdir((folder + "/1_Pooling").c_str(), 0700) == 0);
    return folder;
  }
  abort();
}

void RemoveFolder(const std::string& folder) {
  for (const char* file : kFiles) unlink((folder + "/" + file).c_str());
  rmdir((folder + "/1_Pooling").c_str());
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::string cut = "\n---\n";
  size_t begin = 0;
  for (const char* file : kFiles) {
    const size_t end = std::min(input.find(cut, begin), input.size());
    Put(Folder() + "/" + file, input.substr(begin, end - begin));
    begin = std::min(end + cut.size(), input.size());
  }
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
  }
  return 0;
}
