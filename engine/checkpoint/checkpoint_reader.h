// Checkpoint names -> weights by role, as the model's tensor table says. The
// tables of the embedding block stay in the dtype of the file; other F16 and
// BF16 tensors are widened to float (exact). One thread.
#ifndef ENCODERD_ENGINE_CHECKPOINT_CHECKPOINT_READER_H_
#define ENCODERD_ENGINE_CHECKPOINT_CHECKPOINT_READER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/checkpoint_files.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/tensor_table.h"
#include "engine/checkpoint/weight_source.h"

namespace encoderd {

class CheckpointReader : public WeightSource {
 public:
  // Opens model.safetensors or the shards of model.safetensors.index.json and
  // checks, before anything is read, that every tensor the config asks for is
  // there with its shape. Errors are DATA_LOSS and name tensor, shape found and
  // shape wanted; a folder with only .bin/.pt weights is refused with
  // UNIMPLEMENTED and the way to convert. Tensors outside the encoder (a
  // pooler, a task head) are ignored and noted; a tensor within the embeddings
  // or the layers that the architecture does not know is refused, because it
  // would change digits. verified: the file's digest is that of its author, so
  // that zeros at a matrix's end are meant; in others they are DATA_LOSS.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      const std::string& folder, const ModelConfig& config,
      bool verified = false);

  absl::StatusOr<OuterWeights> ReadOuter() override;
  absl::Status ReadLayer(int32_t layer, LayerWeights* weights) override;

  // For the log: tensors that the encoder does not use and that are not read.
  const std::vector<std::string>& notes() const { return notes_; }

  // SHA-256 of the weight file, lower-case hex; of several shards: of their
  // digests, in the order of their names, joined by newlines. Another thread
  // may ask. stop: as in Sha256OfFile.
  absl::StatusOr<std::string> Sha256(
      const std::atomic<bool>* stop = nullptr) const {
    return files_.Sha256(stop);
  }

 private:
  using Tensor = CheckpointFiles::Tensor;

  CheckpointReader(CheckpointFiles files, std::string prefix,
                   const ModelConfig& config, bool verified);

  // Every tensor that the reads need, and no others.
  absl::Status Check();
  absl::Status CheckTensor(const std::string& module, const char* kind,
                           const std::vector<int64_t>& shape);
  absl::Status CheckRest();
  bool InStack(absl::string_view name) const;
  const Tensor* Find(const std::string& module, const char* kind) const;

  absl::Status ReadInto(const CheckpointModule& module, const char* kind,
                        float* out) const;
  // The rows of a role, one below the other, and their biases; empty where the
  // model has none. Overwrites what is there, as ReadLayer does.
  absl::Status Read(Role role, int32_t layer, HostMatrix* weight,
                    std::vector<float>* bias) const;
  absl::Status Read(Role role, int32_t layer, LinearWeights* linear) const {
    return Read(role, layer, &linear->weight, &linear->bias);
  }
  absl::Status Read(Role role, int32_t layer, NormWeights* norm) const;
  // Of the one tensor of the role, in its dtype; no rows where there is none.
  absl::Status ReadTable(Role role, HostTable* table) const;

  const CheckpointFiles files_;
  const std::string prefix_;
  const ModelConfig config_;
  const bool verified_;
  const std::vector<CheckpointModule> modules_;  // of config_
  std::set<std::string> used_;                   // names of tensors
  std::vector<std::string> notes_;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_CHECKPOINT_READER_H_
