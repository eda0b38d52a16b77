#include "engine/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/checkpoint/architecture.h"
#include "engine/checkpoint/checkpoint_files.h"
#include "engine/io/file.h"

namespace encoderd {
namespace {

using Tensor = CheckpointFiles::Tensor;

// Buffers of ids that some versions saved beside the tables; no weights.
constexpr const char* kIdBuffers[] = {"embeddings.position_ids",
                                      "embeddings.token_type_ids"};
constexpr size_t kMaxNamesInNote = 8;

absl::Status Bad(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("checkpoint: ", what));
}

// What stands before "embeddings." in this checkpoint: "", "bert.", ...
absl::StatusOr<std::string> FindPrefix(
    const std::map<std::string, Tensor>& tensors, const TensorNames& names) {
  const std::string token = absl::StrCat(names.token, ".weight");
  std::vector<std::string> found;
  for (const auto& [name, tensor] : tensors) {
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

class Reader : public CheckpointReader {
 public:
  Reader(CheckpointFiles files, std::string prefix,
         const Architecture& architecture, const ModelConfig& config)
      : files_(std::move(files)),
        prefix_(std::move(prefix)),
        names_(architecture.tensors),
        hidden_(config.hidden_size),
        embedding_(config.table_columns()),
        feed_forward_(config.intermediate_size),
        token_rows_(config.vocab_size),
        position_scheme_(*config.position_scheme),
        position_rows_(config.max_position_embeddings),
        segment_rows_(config.type_vocab_size),
        layers_(config.distinct_layers()),
        inner_layers_(config.inner_group_num),
        projection_(config.embedding_size > 0),
        heads_(config.num_attention_heads),
        bias_rows_(config.attention_bias_rows) {}

  // Every tensor that the reads below will ask for, and none beside them.
  absl::Status Check() {
    absl::Status status;
    const auto want = [&](const std::string& module,
                          const std::vector<int64_t>& weight, bool bias) {
      if (status.ok()) status = CheckTensor(module, ".weight", weight);
      if (status.ok() && bias) {
        status = CheckTensor(module, ".bias", {weight[0]});
      }
    };
    want(names_.token, {token_rows_, embedding_}, false);
    if (position_scheme_.has_table()) {
      want(names_.position, {position_rows_, embedding_}, false);
    }
    if (segment_rows_ > 0) {
      want(names_.segment, {segment_rows_, embedding_}, false);
    }
    want(names_.embedding_norm, {embedding_}, true);
    if (projection_) want(names_.projection, {hidden_, embedding_}, true);
    if (bias_rows_ > 0)
      want(names_.attention_bias, {bias_rows_, heads_}, false);
    for (int32_t l = 0; l < layers_; ++l) {
      want(InLayer(l, names_.query), {hidden_, hidden_}, true);
      want(InLayer(l, names_.key), {hidden_, hidden_}, true);
      want(InLayer(l, names_.value), {hidden_, hidden_}, true);
      want(InLayer(l, names_.attention_output), {hidden_, hidden_}, true);
      want(InLayer(l, names_.attention_norm), {hidden_}, true);
      want(InLayer(l, names_.feed_forward_in), {feed_forward_, hidden_}, true);
      want(InLayer(l, names_.feed_forward_out), {hidden_, feed_forward_}, true);
      want(InLayer(l, names_.output_norm), {hidden_}, true);
    }
    return status.ok() ? CheckRest() : status;
  }

  absl::StatusOr<EmbeddingWeights> ReadEmbeddings() override {
    EmbeddingWeights weights;
    absl::Status status;
    status.Update(
        ReadMatrix(names_.token, token_rows_, embedding_, &weights.token));
    status.Update(ReadPositions(&weights.position));
    weights.segment.cols = embedding_;
    if (segment_rows_ > 0) {
      status.Update(ReadMatrix(names_.segment, segment_rows_, embedding_,
                               &weights.segment));
    }
    status.Update(ReadNorm(names_.embedding_norm, embedding_, &weights.norm));
    if (!status.ok()) return status;
    return weights;
  }

  absl::StatusOr<LinearWeights> ReadProjection() override {
    LinearWeights weights;
    if (!projection_) return weights;
    const absl::Status status =
        ReadLinear({names_.projection}, hidden_, embedding_, &weights);
    if (!status.ok()) return status;
    return weights;
  }

  absl::StatusOr<HostMatrix> ReadAttentionBias() override {
    HostMatrix table;
    if (bias_rows_ == 0) return table;
    const absl::Status status =
        ReadMatrix(names_.attention_bias, bias_rows_, heads_, &table);
    if (!status.ok()) return status;
    return table;
  }

  absl::StatusOr<LayerWeights> ReadLayer(int32_t layer) override {
    if (layer < 0 || layer >= layers_) {
      return absl::InternalError(absl::StrCat("layer ", layer,
                                              " of a model "
                                              "with ",
                                              layers_));
    }
    LayerWeights weights;
    absl::Status status;
    status.Update(
        ReadLinear({InLayer(layer, names_.query), InLayer(layer, names_.key),
                    InLayer(layer, names_.value)},
                   hidden_, hidden_, &weights.qkv));
    status.Update(ReadLinear({InLayer(layer, names_.attention_output)}, hidden_,
                             hidden_, &weights.attention_output));
    status.Update(ReadNorm(InLayer(layer, names_.attention_norm), hidden_,
                           &weights.attention_norm));
    status.Update(ReadLinear({InLayer(layer, names_.feed_forward_in)},
                             feed_forward_, hidden_, &weights.feed_forward_in));
    status.Update(ReadLinear({InLayer(layer, names_.feed_forward_out)}, hidden_,
                             feed_forward_, &weights.feed_forward_out));
    status.Update(ReadNorm(InLayer(layer, names_.output_norm), hidden_,
                           &weights.output_norm));
    if (!status.ok()) return status;
    return weights;
  }

  std::vector<std::string> notes() const override { return notes_; }
  absl::StatusOr<std::string> Sha256() override { return files_.Sha256(); }

 private:
  std::string InLayer(int32_t layer, const char* module) const {
    if (names_.inner_layer == nullptr) {
      return absl::StrCat(names_.layer, layer, ".", module);
    }
    return absl::StrCat(names_.layer, layer / inner_layers_, ".",
                        names_.inner_layer, layer % inner_layers_, ".", module);
  }

  // The tensor, under its name of today or the one that LayerNorms had in
  // TensorFlow's checkpoints; nullptr when there is none.
  const Tensor* Find(const std::string& module, const char* kind) const {
    const std::string base = absl::StrCat(prefix_, module);
    auto found = files_.tensors().find(absl::StrCat(base, kind));
    if (found == files_.tensors().end()) {
      const bool weight = absl::string_view(kind) == ".weight";
      found = files_.tensors().find(
          absl::StrCat(base, weight ? ".gamma" : ".beta"));
    }
    return found == files_.tensors().end() ? nullptr : &found->second;
  }

  absl::Status CheckTensor(const std::string& module, const char* kind,
                           const std::vector<int64_t>& shape) {
    const Tensor* tensor = Find(module, kind);
    if (tensor == nullptr) {
      return Bad(absl::StrCat("the tensor ", prefix_, module, kind, " ",
                              ShapeText(shape), " is missing"));
    }
    const TensorEntry& entry = *tensor->entry;
    if (entry.shape != shape) {
      return Bad(absl::StrCat("the tensor ", entry.name, " has the shape ",
                              ShapeText(entry.shape), "; config.json wants ",
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

  // Is the module part of what the forward pass runs through: of the tables or
  // the layers, or something between them?
  bool InStack(absl::string_view name) const {
    const auto root = [](absl::string_view part) {
      return part.substr(0, part.find('.'));
    };
    const absl::string_view part = root(name);
    return part == root(names_.token) || part == root(names_.layer) ||
           (names_.projection != nullptr && part == root(names_.projection));
  }

  // Tensors that were not asked for.
  absl::Status CheckRest() {
    std::vector<std::string> ignored;
    for (const auto& [name, tensor] : files_.tensors()) {
      if (used_.count(name) > 0) continue;
      absl::string_view rest = name;
      if (absl::ConsumePrefix(&rest, prefix_)) {
        const bool buffer =
            std::find(std::begin(kIdBuffers), std::end(kIdBuffers), rest) !=
            std::end(kIdBuffers);
        if (buffer) continue;
        if (InStack(rest)) {
          return absl::UnimplementedError(
              absl::StrCat("checkpoint: the tensor ", Quote(name), " ",
                           ShapeText(tensor.entry->shape),
                           " is no part of this architecture with ", layers_,
                           " layers, ", segment_rows_, " segments and ",
                           position_scheme_.name(), " positions"));
        }
      }
      ignored.push_back(name);
    }
    if (ignored.empty()) return absl::OkStatus();
    const size_t shown = std::min(kMaxNamesInNote, ignored.size());
    std::vector<std::string> names;
    for (size_t i = 0; i < shown; ++i) names.push_back(Quote(ignored[i]));
    notes_.push_back(absl::StrCat(
        ignored.size(), " tensors beside the encoder are ignored: ",
        absl::StrJoin(names, ", "), shown < ignored.size() ? ", ..." : ""));
    return absl::OkStatus();
  }

  absl::Status ReadInto(const std::string& module, const char* kind,
                        float* out) const {
    const Tensor* tensor = Find(module, kind);
    return tensor->file->ReadFloats(*tensor->entry, out);
  }

  absl::Status ReadMatrix(const std::string& module, int64_t rows, int64_t cols,
                          HostMatrix* out) const {
    *out = {rows, cols, std::vector<float>(rows * cols)};
    return ReadInto(module, ".weight", out->data.data());
  }

  absl::Status ReadPositions(HostMatrix* out) const {
    const auto read = [this]() -> absl::StatusOr<HostMatrix> {
      HostMatrix table;
      const absl::Status status =
          ReadMatrix(names_.position, position_rows_, embedding_, &table);
      if (!status.ok()) return status;
      return table;
    };
    absl::StatusOr<HostMatrix> rows =
        position_scheme_.Rows(position_rows_, embedding_, read);
    if (!rows.ok()) return rows.status();
    *out = *std::move(rows);
    return absl::OkStatus();
  }

  absl::Status ReadNorm(const std::string& module, int64_t size,
                        NormWeights* out) const {
    out->gain.resize(size);
    out->bias.resize(size);
    absl::Status status = ReadInto(module, ".weight", out->gain.data());
    status.Update(ReadInto(module, ".bias", out->bias.data()));
    return status;
  }

  // Modules of [out,in] each, one below the other.
  absl::Status ReadLinear(const std::vector<std::string>& modules, int64_t out,
                          int64_t in, LinearWeights* linear) const {
    const int64_t rows = out * static_cast<int64_t>(modules.size());
    linear->weight = {rows, in, std::vector<float>(rows * in)};
    linear->bias.resize(rows);
    absl::Status status;
    for (size_t i = 0; i < modules.size(); ++i) {
      status.Update(ReadInto(modules[i], ".weight",
                             linear->weight.data.data() + i * out * in));
      status.Update(
          ReadInto(modules[i], ".bias", linear->bias.data() + i * out));
    }
    return status;
  }

  const CheckpointFiles files_;
  const std::string prefix_;
  const TensorNames names_;
  const int64_t hidden_;
  const int64_t embedding_;
  const int64_t feed_forward_;
  const int64_t token_rows_;
  const PositionScheme& position_scheme_;
  const int64_t position_rows_;
  const int64_t segment_rows_;
  const int32_t layers_;        // that the checkpoint has
  const int32_t inner_layers_;  // of each group
  const bool projection_;
  const int64_t heads_;
  const int64_t bias_rows_;
  std::set<std::string> used_;
  std::vector<std::string> notes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(
    const std::string& folder, const ModelConfig& config) {
  const Architecture* architecture = FindArchitecture(config.model_type);
  if (architecture == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "the model_type ", Quote(config.model_type), " is not supported"));
  }
  absl::StatusOr<CheckpointFiles> files =
      CheckpointFiles::Open(folder, config.transformer_folder);
  if (!files.ok()) return files.status();
  const absl::StatusOr<std::string> prefix =
      FindPrefix(files->tensors(), architecture->tensors);
  if (!prefix.ok()) return prefix.status();
  auto reader = std::make_unique<Reader>(*std::move(files), *prefix,
                                         *architecture, config);
  const absl::Status status = reader->Check();
  if (!status.ok()) return status;
  return reader;
}

}  // namespace encoderd
