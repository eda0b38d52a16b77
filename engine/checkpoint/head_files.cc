#include "engine/checkpoint/head_files.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint_files.h"
#include "engine/checkpoint/sentence_modules.h"
#include "engine/checkpoint/settings.h"
#include "engine/io/json.h"

namespace encoderd {
namespace {

constexpr char kSentence[] = "sentence_embedding";

// Which of several outputs a module works on.
absl::Status CheckNames(const JsonFields& fields) {
  for (const char* key : {"module_input_name", "module_output_name"}) {
    const absl::StatusOr<std::string> name = fields.String(key, kSentence);
    if (!name.ok()) return name.status();
    if (*name != kSentence) return Unsupported(fields, key, "");
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> IsTanh(const JsonFields& fields) {
  constexpr char kKey[] = "activation_function";
  constexpr char kSupported[] = "supported: Tanh, Identity";
  // sentence-transformers fails at null, and takes Tanh without the key.
  if (fields.IsNull(kKey)) return Unsupported(fields, kKey, kSupported);
  const absl::StatusOr<std::string> name =
      fields.String(kKey, "torch.nn.modules.activation.Tanh");
  if (!name.ok()) return name.status();
  if (*name == "torch.nn.modules.activation.Tanh" || *name == "torch.nn.Tanh") {
    return true;
  }
  if (*name == "torch.nn.modules.linear.Identity" ||
      *name == "torch.nn.Identity") {
    return false;
  }
  return Unsupported(fields, kKey, kSupported);
}

// The tensors of one module's model.safetensors.
class ModuleFile {
 public:
  static absl::StatusOr<ModuleFile> Open(const std::string& folder,
                                         const std::string& path) {
    absl::StatusOr<CheckpointFiles> files = CheckpointFiles::Open(folder, path);
    if (!files.ok()) {
      return absl::Status(
          files.status().code(),
          absl::StrCat("module ", path, ": ", files.status().message()));
    }
    return ModuleFile(*std::move(files), path);
  }

  // The values of the tensor, which must have this shape.
  absl::Status Read(const std::string& name, const std::vector<int64_t>& shape,
                    std::vector<float>* out) {
    const auto found = files_.tensors().find(name);
    if (found == files_.tensors().end()) {
      return absl::DataLossError(absl::StrCat(path_, ": the tensor ", name, " ",
                                              ShapeText(shape), " is missing"));
    }
    const TensorEntry& entry = *found->second.entry;
    if (entry.shape != shape) {
      return absl::DataLossError(absl::StrCat(
          path_, ": the tensor ", name, " has the shape ",
          ShapeText(entry.shape), "; config.json requires ", ShapeText(shape)));
    }
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    out->resize(count);
    ++read_;
    return found->second.file->ReadFloats(entry, out->data());
  }

  // No unread tensors: they would belong to the computation.
  absl::Status CheckRest() const {
    if (files_.tensors().size() == read_) return absl::OkStatus();
    return absl::UnimplementedError(
        absl::StrCat(path_, ": ", files_.tensors().size(),
                     " tensors, of which this module uses ", read_));
  }
  absl::StatusOr<std::string> Sha256() const { return files_.Sha256(); }

 private:
  ModuleFile(CheckpointFiles files, std::string path)
      : files_(std::move(files)), path_(std::move(path)) {}

  CheckpointFiles files_;
  std::string path_;
  size_t read_ = 0;
};

absl::StatusOr<Head::Layer> ReadLayer(const std::string& folder,
                                      const HeadModule& module,
                                      std::vector<std::string>* digests) {
  Head::Layer layer = {module, {}, {}};
  if (module.kind == HeadModule::Kind::kNormalize) return layer;
  absl::StatusOr<ModuleFile> file = ModuleFile::Open(folder, module.folder);
  if (!file.ok()) return file.status();
  absl::Status status;
  if (module.kind == HeadModule::Kind::kDense) {
    status =
        file->Read("linear.weight", {module.out, module.in}, &layer.weight);
    if (status.ok() && module.bias) {
      status = file->Read("linear.bias", {module.out}, &layer.bias);
    }
  } else {
    status = file->Read("norm.weight", {module.in}, &layer.weight);
    if (status.ok()) status = file->Read("norm.bias", {module.in}, &layer.bias);
  }
  if (status.ok()) status = file->CheckRest();
  if (!status.ok()) return status;
  absl::StatusOr<std::string> digest = file->Sha256();
  if (!digest.ok()) return digest.status();
  digests->push_back(*std::move(digest));
  return layer;
}

}  // namespace

absl::StatusOr<HeadModule> ReadNormalizeConfig(const std::string& folder,
                                               const std::string& path) {
  HeadModule module;
  module.folder = path;
  if (path.empty()) return module;
  const std::string name = JoinName(path, "config.json");
  const absl::StatusOr<Json> json =
      ReadOptionalJsonObject(folder, name, kSmallJson);
  if (!json.ok()) return json.status();
  const absl::Status names = CheckNames(JsonFields(*json, name));
  if (!names.ok()) return names;
  return module;
}

absl::StatusOr<HeadModule> ReadDenseConfig(const std::string& folder,
                                           const std::string& path) {
  const std::string name = JoinName(path, "config.json");
  const absl::StatusOr<Json> json = ReadJsonObject(folder, name, kSmallJson);
  if (!json.ok()) return json.status();
  const JsonFields fields(*json, name);
  const absl::Status names = CheckNames(fields);
  if (!names.ok()) return names;
  const absl::StatusOr<bool> residual = fields.Bool("use_residual", false);
  if (!residual.ok()) return residual.status();
  if (*residual) return Unsupported(fields, "use_residual", "");
  HeadModule module;
  module.kind = HeadModule::Kind::kDense;
  module.folder = path;
  absl::Status status;
  Take(fields.Int("in_features", 1, kMaxWidth), &module.in, &status);
  Take(fields.Int("out_features", 1, kMaxWidth), &module.out, &status);
  Take(fields.Bool("bias", true), &module.bias, &status);
  Take(IsTanh(fields), &module.tanh, &status);
  if (!status.ok()) return status;
  return module;
}

absl::StatusOr<HeadModule> ReadLayerNormConfig(const std::string& folder,
                                               const std::string& path) {
  const std::string name = JoinName(path, "config.json");
  const absl::StatusOr<Json> json = ReadJsonObject(folder, name, kSmallJson);
  if (!json.ok()) return json.status();
  constexpr char kSize[] = "dimension";
  const JsonFields fields(*json, name);
  // Such as eps: sentence-transformers knows no other, and fails.
  for (const auto& member : json->items()) {
    if (member.key() != kSize)
      return Unsupported(fields, member.key(), "supported: dimension");
  }
  const absl::StatusOr<int64_t> size = fields.Int(kSize, 1, kMaxWidth);
  if (!size.ok()) return size.status();
  HeadModule module;
  module.kind = HeadModule::Kind::kLayerNorm;
  module.folder = path;
  module.in = module.out = static_cast<int32_t>(*size);
  return module;
}

absl::Status FitHead(int32_t hidden_size, std::vector<HeadModule>* modules) {
  int32_t width = hidden_size;
  for (HeadModule& module : *modules) {
    if (module.kind == HeadModule::Kind::kNormalize) {
      module.in = module.out = width;
    }
    if (module.in != width) {
      return absl::DataLossError(
          absl::StrCat("the module ", module.folder, " takes ", module.in,
                       " values; the preceding one returns ", width));
    }
    width = module.out;
  }
  return absl::OkStatus();
}

absl::StatusOr<HeadCheckpoint> ReadHead(
    const std::string& folder, const std::vector<HeadModule>& modules) {
  HeadCheckpoint checkpoint;
  if (modules.empty()) return checkpoint;
  std::vector<Head::Layer> layers;
  for (const HeadModule& module : modules) {
    absl::StatusOr<Head::Layer> layer =
        ReadLayer(folder, module, &checkpoint.sha256);
    if (!layer.ok()) return layer.status();
    layers.push_back(*std::move(layer));
  }
  checkpoint.head = std::make_unique<const Head>(std::move(layers));
  return checkpoint;
}

}  // namespace encoderd
