// The weight files of a model folder as one set of tensors: model.safetensors,
// or the shards that model.safetensors.index.json names.
#ifndef ENCODERD_ENGINE_CHECKPOINT_CHECKPOINT_FILES_H_
#define ENCODERD_ENGINE_CHECKPOINT_CHECKPOINT_FILES_H_

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/io/safetensors.h"

namespace encoderd {

class CheckpointFiles {
 public:
  struct Tensor {
    const SafetensorsFile* file = nullptr;
    const TensorEntry* entry = nullptr;
  };

  // subfolder: where in `folder` the weights lie; empty: the folder itself.
  // NOT_FOUND without weights; UNIMPLEMENTED, with the way to convert, when
  // there are only pickled ones; DATA_LOSS for an index that does not fit its
  // shards; else the errors of SafetensorsFile.
  static absl::StatusOr<CheckpointFiles> Open(const std::string& folder,
                                              const std::string& subfolder);

  // By name, in order. Entries point into `files`, which never moves.
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }

  // Of the file; of several: of their digests, in the order of their names,
  // joined by newlines.
  // stop: as in Sha256OfFile.
  absl::StatusOr<std::string> Sha256(
      const std::atomic<bool>* stop = nullptr) const;

 private:
  absl::Status OpenSharded(const std::string& folder,
                           const std::string& subfolder);
  // Adds the tensors of the files that the index does not name. DATA_LOSS for
  // one that two files have.
  absl::Status AddUnnamed(absl::string_view index);

  std::vector<std::unique_ptr<const SafetensorsFile>> files_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_CHECKPOINT_FILES_H_
