#include "engine/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/io/file.h"

namespace encoderd {
namespace {

constexpr size_t kMaxNamesInNote = 8;

absl::Status Bad(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("checkpoint: ", what));
}

// The prefix of the token table's name in this checkpoint: "", "bert.".
absl::StatusOr<std::string> FindPrefix(const CheckpointFiles& files,
                                       const ModelConfig& config) {
  const std::string token =
      absl::StrCat(ModulesOf(config).front().name, ".weight");
  std::vector<std::string> found;
  for (const auto& [name, tensor] : files.tensors()) {
    absl::string_view prefix = name;
    if (absl::ConsumeSuffix(&prefix, token) &&
        (prefix.empty() || absl::EndsWith(prefix, "."))) {
      found.push_back(std::string(prefix));
    }
  }
  if (found.empty()) return Bad(absl::StrCat("no tensor ", token));
  if (found.size() > 1) {
    return absl::UnimplementedError(absl::StrCat(
        "checkpoint: ", found.size(), " encoders in one file (",
        Quote(found[0]), ", ", Quote(found[1]), "); one is supported"));
  }
  return found[0];
}

// The name with .weight and .bias for TensorFlow's .gamma and .beta.
std::string CurrentName(absl::string_view name) {
  if (absl::ConsumeSuffix(&name, ".gamma"))
    return absl::StrCat(name, ".weight");
  if (absl::ConsumeSuffix(&name, ".beta")) return absl::StrCat(name, ".bias");
  return std::string(name);
}

// What is left of the name, less a prefix, if it is one of these; else empty.
absl::string_view WithoutPrefix(
    absl::string_view name, const std::set<std::string, std::less<>>& names) {
  for (size_t dot; (dot = name.find('.')) != name.npos;) {
    name.remove_prefix(dot + 1);
    if (names.find(name) != names.end()) return name;
  }
  return {};
}

// Of a tensor that CheckTensor takes.
DType DTypeOf(const TensorEntry& entry) {
  if (entry.dtype == "F32") return DType::kF32;
  return entry.dtype == "F16" ? DType::kF16 : DType::kBF16;
}

// stored [in,out] -> out [out,in]
void Transpose(const std::vector<float>& stored, int64_t in, int64_t out,
               float* to) {
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t i = 0; i < in; ++i) to[o * in + i] = stored[i * out + o];
  }
}

// A file whose end never arrived may have its full length and zeros there. No
// trained matrix ends in a sixteenth of zeros.
absl::Status CheckEnd(const TensorEntry& entry,
                      const std::vector<int64_t>& shape, const float* values) {
  constexpr int64_t kPart = 16;
  const int64_t count = shape[0] * shape[1];
  int64_t end = count;
  while (end > 0 && values[end - 1] == 0.0f) --end;
  const int64_t zero_rows = shape[0] - (end + shape[1] - 1) / shape[1];
  if (zero_rows < 1 || zero_rows * kPart < shape[0]) return absl::OkStatus();
  return Bad(absl::StrCat("the last ", zero_rows, " of ", shape[0],
                          " rows of the tensor ", entry.name,
                          " are zeros, as after an interrupted download: "
                          "fetch the model again; if they are meant, list the "
                          "folder's files in SHA256SUMS"));
}

}  // namespace

CheckpointReader::CheckpointReader(CheckpointFiles files, std::string prefix,
                                   const ModelConfig& config, bool verified)
    : files_(std::move(files)),
      prefix_(std::move(prefix)),
      config_(config),
      verified_(verified),
      modules_(ModulesOf(config_)) {}

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(
    const std::string& folder, const ModelConfig& config, bool verified) {
  absl::StatusOr<CheckpointFiles> files =
      CheckpointFiles::Open(folder, config.transformer_folder);
  if (!files.ok()) return files.status();
  absl::StatusOr<std::string> prefix = FindPrefix(*files, config);
  if (!prefix.ok()) return prefix.status();
  auto reader = absl::WrapUnique(new CheckpointReader(
      *std::move(files), *std::move(prefix), config, verified));
  const absl::Status status = reader->Check();
  if (!status.ok()) return status;
  return reader;
}

absl::Status CheckpointReader::Check() {
  for (const CheckpointModule& module : modules_) {
    absl::Status status =
        CheckTensor(module.name, ".weight", module.stored_shape());
    if (status.ok() && module.row->bias)
      status = CheckTensor(module.name, ".bias", {module.out});
    if (!status.ok()) return status;
  }
  return CheckRest();
}

// The tensor, under its name of today or the one that LayerNorms had in
// TensorFlow's checkpoints; nullptr when there is none.
const CheckpointReader::Tensor* CheckpointReader::Find(
    const std::string& module, const char* kind) const {
  const std::string base = absl::StrCat(prefix_, module);
  auto found = files_.tensors().find(absl::StrCat(base, kind));
  if (found == files_.tensors().end()) {
    const bool weight = absl::string_view(kind) == ".weight";
    found =
        files_.tensors().find(absl::StrCat(base, weight ? ".gamma" : ".beta"));
  }
  return found == files_.tensors().end() ? nullptr : &found->second;
}

absl::Status CheckpointReader::CheckTensor(const std::string& module,
                                           const char* kind,
                                           const std::vector<int64_t>& shape) {
  const Tensor* tensor = Find(module, kind);
  if (tensor == nullptr) {
    return Bad(absl::StrCat("the tensor ", prefix_, module, kind, " ",
                            ShapeText(shape), " is missing"));
  }
  const TensorEntry& entry = *tensor->entry;
  if (entry.shape != shape) {
    return Bad(absl::StrCat("the tensor ", entry.name, " has the shape ",
                            ShapeText(entry.shape), "; config.json requires ",
                            ShapeText(shape)));
  }
  if (entry.dtype != "F32" && entry.dtype != "F16" && entry.dtype != "BF16") {
    return absl::UnimplementedError(
        absl::StrCat("checkpoint: the tensor ", entry.name, " has the dtype ",
                     entry.dtype, "; weights are F32, F16 or BF16"));
  }
  used_.insert(entry.name);
  return absl::OkStatus();
}

// Is the tensor part of what the forward pass runs through: below the same
// root as a row of the table?
bool CheckpointReader::InStack(absl::string_view name) const {
  const auto root = [](absl::string_view part) {
    return part.substr(0, part.find('.'));
  };
  const std::vector<TensorRow>& rows = config_.tensors.rows;
  return std::any_of(rows.begin(), rows.end(), [&](const TensorRow& row) {
    return root(name) == root(row.name);
  });
}

// Tensors that were not asked for.
absl::Status CheckpointReader::CheckRest() {
  const std::set<std::string> buffers = IgnoredNames(config_);
  // In transformers a name with the prefix of the model's class replaces the
  // bare one; others are taken for a second encoder, too.
  std::set<std::string, std::less<>> bare;
  if (prefix_.empty()) {
    for (const std::string& name : used_) bare.insert(CurrentName(name));
  }
  std::vector<std::string> ignored;
  for (const auto& [name, tensor] : files_.tensors()) {
    if (used_.count(name) > 0) continue;
    absl::string_view rest = name;
    if (absl::ConsumePrefix(&rest, prefix_)) {
      if (buffers.count(std::string(rest)) > 0) continue;
      if (InStack(rest)) {
        return absl::UnimplementedError(absl::StrCat(
            "checkpoint: the tensor ", Quote(name), " ",
            ShapeText(tensor.entry->shape),
            " is not part of this architecture with ",
            config_.distinct_layers(), " layers, ", config_.type_vocab_size,
            " segments and ", config_.position_scheme->name(), " positions"));
      }
    }
    const std::string current = CurrentName(name);
    const absl::string_view same = WithoutPrefix(current, bare);
    if (!same.empty()) {
      return absl::UnimplementedError(absl::StrCat(
          "checkpoint: the tensors ", Quote(name), " and ", Quote(same),
          " are of two encoders in one file; one is supported"));
    }
    ignored.push_back(name);
  }
  if (ignored.empty()) return absl::OkStatus();
  const size_t shown = std::min(kMaxNamesInNote, ignored.size());
  std::vector<std::string> names;
  for (size_t i = 0; i < shown; ++i) names.push_back(Quote(ignored[i]));
  notes_.push_back(absl::StrCat(
      ignored.size(), " tensors outside the encoder are ignored: ",
      absl::StrJoin(names, ", "), shown < ignored.size() ? ", ..." : ""));
  return absl::OkStatus();
}

absl::Status CheckpointReader::ReadInto(const CheckpointModule& module,
                                        const char* kind, float* out) const {
  const Tensor* tensor = Find(module.name, kind);
  const absl::Status status = tensor->file->ReadFloats(*tensor->entry, out);
  const std::vector<int64_t> shape = module.stored_shape();
  if (!status.ok() || verified_ || absl::string_view(kind) != ".weight" ||
      !module.row->in_layer || shape.size() != 2) {
    return status;
  }
  return CheckEnd(*tensor->entry, shape, out);
}

absl::Status CheckpointReader::Read(Role role, int32_t layer,
                                    HostMatrix* weight,
                                    std::vector<float>* bias) const {
  std::vector<const CheckpointModule*> parts;
  weight->rows = weight->cols = 0;
  for (const CheckpointModule& module : modules_) {
    if (module.row->role != role || module.layer != layer) continue;
    parts.push_back(&module);
    weight->rows += module.out;
    weight->cols = module.in;
  }
  weight->data.resize(weight->rows * weight->cols);
  if (bias != nullptr) bias->assign(weight->rows, 0.0f);
  int64_t row = 0;
  absl::Status status;
  for (const CheckpointModule* part : parts) {
    float* out = weight->data.data() + row * part->in;
    if (part->row->transposed) {
      std::vector<float> stored(part->in * part->out);
      status.Update(ReadInto(*part, ".weight", stored.data()));
      Transpose(stored, part->in, part->out, out);
    } else {
      status.Update(ReadInto(*part, ".weight", out));
    }
    if (part->row->bias)
      status.Update(ReadInto(*part, ".bias", bias->data() + row));
    row += part->out;
  }
  return status;
}

absl::Status CheckpointReader::Read(Role role, int32_t layer,
                                    NormWeights* norm) const {
  HostMatrix gain;  // [cols,1]
  const absl::Status status = Read(role, layer, &gain, &norm->bias);
  norm->gain = std::move(gain.data);
  return status;
}

absl::Status CheckpointReader::ReadTable(Role role, HostTable* table) const {
  const auto module = std::find_if(
      modules_.begin(), modules_.end(),
      [role](const CheckpointModule& one) { return one.row->role == role; });
  if (module == modules_.end()) return absl::OkStatus();
  const Tensor* tensor = Find(module->name, ".weight");
  const TensorEntry& entry = *tensor->entry;
  *table = HostTable(module->out, module->in, DTypeOf(entry));
  return table->dtype == DType::kF32
             ? tensor->file->ReadFloats(entry, table->floats.data())
             : tensor->file->ReadHalves(entry, table->halves.data());
}

absl::StatusOr<OuterWeights> CheckpointReader::ReadOuter() {
  OuterWeights weights;
  EmbeddingWeights& embeddings = weights.embeddings;
  absl::Status status = ReadTable(Role::kToken, &embeddings.token);
  const auto read = [this]() -> absl::StatusOr<HostTable> {
    HostTable table;
    const absl::Status read = ReadTable(Role::kPosition, &table);
    if (!read.ok()) return read;
    return table;
  };
  absl::StatusOr<HostTable> positions = config_.position_scheme->Rows(
      config_.max_position_embeddings, config_.table_columns(), read);
  status.Update(positions.status());
  if (positions.ok()) embeddings.position = *std::move(positions);
  status.Update(ReadTable(Role::kSegment, &embeddings.segment));
  status.Update(Read(Role::kEmbeddingNorm, 0, &embeddings.norm));
  status.Update(Read(Role::kProjection, 0, &weights.projection));
  status.Update(
      Read(Role::kAttentionBias, 0, &weights.attention_bias, nullptr));
  status.Update(Read(Role::kFinalNorm, 0, &weights.final_norm));
  if (!status.ok()) return status;
  return weights;
}

absl::Status CheckpointReader::ReadLayer(int32_t layer, LayerWeights* weights) {
  if (layer < 0 || layer >= config_.distinct_layers()) {
    return absl::InternalError(absl::StrCat(
        "layer ", layer, " of a model with ", config_.distinct_layers()));
  }
  absl::Status status = Read(Role::kQkv, layer, &weights->qkv);
  status.Update(
      Read(Role::kAttentionOutput, layer, &weights->attention_output));
  status.Update(Read(Role::kAttentionNorm, layer, &weights->attention_norm));
  status.Update(Read(Role::kFeedForwardIn, layer, &weights->feed_forward_in));
  status.Update(Read(Role::kFeedForwardOut, layer, &weights->feed_forward_out));
  status.Update(
      Read(Role::kFeedForwardNorm, layer, &weights->feed_forward_norm));
  return status;
}

}  // namespace encoderd
