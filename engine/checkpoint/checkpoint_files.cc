#include "engine/checkpoint/checkpoint_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/checkpoint/sentence_modules.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "engine/io/sha256.h"

namespace encoderd {
namespace {

constexpr char kSingle[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";
constexpr JsonLimits kIndexLimits = {.max_bytes = 32 << 20, .max_depth = 8};
constexpr size_t kMaxShards = 1024;

// Other formats for weights. They contain code (pickle) or are unsafe to read;
// none is ever opened.
constexpr const char* kOtherWeights[] = {
    "pytorch_model.bin",  "pytorch_model.bin.index.json",
    "pytorch_model.pt",   "model.pt",
    "model.pth",          "pytorch_model.pth",
    "model.bin",          "tf_model.h5",
    "flax_model.msgpack",
};

absl::Status NoWeights(const std::string& folder,
                       const std::string& subfolder) {
  for (const char* name : kOtherWeights) {
    if (!FileExists(folder, JoinName(subfolder, name)).value_or(false))
      continue;
    const char* const command =
        FileExists(folder, "modules.json").value_or(false)
            ? "from sentence_transformers import SentenceTransformer; "
              "SentenceTransformer('FOLDER').save('NEW')"
            : "from transformers import AutoModel, AutoTokenizer; "
              "[kind.from_pretrained('FOLDER').save_pretrained('NEW') for kind "
              "in (AutoModel, AutoTokenizer)]";
    return absl::UnimplementedError(absl::StrCat(
        "the weights are in ", Quote(JoinName(subfolder, name)),
        ", a format that is never read because reading it can run code; "
        "convert them once, on a machine where that is acceptable: python -c "
        "\"",
        command, "\""));
  }
  return absl::NotFoundError(absl::StrCat(
      "no weights in the folder ",
      Quote(subfolder.empty() ? folder : JoinName(folder, subfolder)),
      ": neither ", kSingle, " nor ", kIndex,
      "; fetch the model again, with its *.safetensors"));
}

}  // namespace

absl::StatusOr<CheckpointFiles> CheckpointFiles::Open(
    const std::string& folder, const std::string& subfolder) {
  CheckpointFiles files;
  const absl::StatusOr<bool> single =
      FileExists(folder, JoinName(subfolder, kSingle));
  if (!single.ok()) return single.status();
  if (!*single) {
    const absl::StatusOr<bool> index =
        FileExists(folder, JoinName(subfolder, kIndex));
    if (!index.ok()) return index.status();
    if (!*index) return NoWeights(folder, subfolder);
    const absl::Status status = files.OpenSharded(folder, subfolder);
    if (!status.ok()) return status;
    return files;
  }
  absl::StatusOr<SafetensorsFile> file =
      SafetensorsFile::Open(folder, JoinName(subfolder, kSingle));
  if (!file.ok()) return file.status();
  files.files_.push_back(
      std::make_unique<const SafetensorsFile>(*std::move(file)));
  for (const TensorEntry& entry : files.files_[0]->tensors()) {
    files.tensors_[entry.name] = {files.files_[0].get(), &entry};
  }
  return files;
}

absl::Status CheckpointFiles::OpenSharded(const std::string& folder,
                                          const std::string& subfolder) {
  const std::string index = JoinName(subfolder, kIndex);
  const absl::StatusOr<Json> json = ReadJsonObject(folder, index, kIndexLimits);
  if (!json.ok()) return json.status();
  const JsonFields fields(*json, index);
  const Json* weight_map = fields.Find("weight_map");
  if (weight_map == nullptr || !weight_map->is_object()) {
    return fields.Bad("weight_map", "expected an object");
  }
  std::map<std::string, const SafetensorsFile*> shards;
  for (const auto& member : weight_map->items()) {
    if (!member.value().is_string()) {
      return absl::DataLossError(
          absl::StrCat(index, ": the tensor ", Quote(member.key()), " is in ",
                       ShowJson(member.value()), "; expected a file name"));
    }
    const std::string name = member.value().get<std::string>();
    const SafetensorsFile*& shard = shards[name];
    if (shard == nullptr) {
      if (shards.size() > kMaxShards) {
        return absl::DataLossError(
            absl::StrCat(index, " names more than ", kMaxShards, " files"));
      }
      absl::StatusOr<SafetensorsFile> file =
          SafetensorsFile::Open(folder, JoinName(subfolder, name));
      if (!file.ok()) return file.status();
      // SHA256SUMS need not list others.
      if (!absl::EndsWith(name, ".safetensors")) {
        return absl::DataLossError(
            absl::StrCat(index, ": the tensor ", Quote(member.key()), " is in ",
                         Quote(name), "; expected a .safetensors file"));
      }
      files_.push_back(
          std::make_unique<const SafetensorsFile>(*std::move(file)));
      shard = files_.back().get();
    }
    const TensorEntry* entry = shard->Find(member.key());
    if (entry == nullptr) {
      return absl::DataLossError(absl::StrCat(index, ": the file ", Quote(name),
                                              " lacks the tensor ",
                                              Quote(member.key())));
    }
    tensors_[member.key()] = {shard, entry};
  }
  const absl::Status status = AddUnnamed(index);
  if (!status.ok()) return status;
  std::sort(files_.begin(), files_.end(), [](const auto& a, const auto& b) {
    return a->file().name() < b->file().name();
  });
  return absl::OkStatus();
}

// transformers reads the files whole, and takes a tensor from the last one that
// has it.
absl::Status CheckpointFiles::AddUnnamed(absl::string_view index) {
  for (const auto& file : files_) {
    for (const TensorEntry& entry : file->tensors()) {
      const auto [known, is_new] =
          tensors_.try_emplace(entry.name, Tensor{file.get(), &entry});
      if (is_new || known->second.file == file.get()) continue;
      return absl::DataLossError(
          absl::StrCat(index, ": the tensor ", Quote(entry.name), " is in ",
                       Quote(known->second.file->file().name()), " and in ",
                       Quote(file->file().name()), "; expected one file"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> CheckpointFiles::Sha256(
    const std::atomic<bool>* stop) const {
  std::vector<std::string> digests;
  for (const auto& file : files_) {
    absl::StatusOr<std::string> digest = Sha256OfFile(file->file(), stop);
    if (!digest.ok()) return digest.status();
    digests.push_back(*std::move(digest));
  }
  if (digests.size() == 1) return digests[0];
  return Sha256OfString(absl::StrJoin(digests, "\n"));
}

}  // namespace encoderd
