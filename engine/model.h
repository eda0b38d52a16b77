// The engine's front door: a model folder in the Hugging Face /
// sentence-transformers layout, loaded onto a device. Constant after Load and
// shared by all threads.
#ifndef ENCODERD_ENGINE_MODEL_H_
#define ENCODERD_ENGINE_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/batch.h"
#include "engine/base/tensor.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/parameters.h"
#include "engine/session.h"
#include "engine/tokenizer/tokenizer.h"

namespace encoderd {

struct ModelOptions {
  // The words of engine/device/device_words.h.
  std::string device = "auto";
  // auto (fp32 on a CPU, bf16 on a GPU), fp32, bf16, fp16
  std::string dtype = "auto";
  // Folder where a GPU stores which algorithms for matrix products were
  // fastest; empty: nothing is stored.
  std::string tuning_folder = "";
  // What matrix products multiply: dtype, fp8 (some cards) or int8 (some CPUs)
  std::string products = "dtype";
  // Tokens; 0: the model's own limit; at most the position table's rows.
  int32_t max_len = 0;
  // Small batches by CUDA graphs, where a GPU computes.
  bool cuda_graphs = true;
};

struct ModelInfo {
  ModelConfig config;
  IdLimits limits;
  std::string device;  // for people: name of the device and why it was chosen
  bool on_gpu = false;
  std::string dtype;  // of the matrix products: "fp32"; "fp8"; "int8"
  // Sessions that fill the device, each on its own thread
  // (Device::preferred_sessions): what --threads=0 means.
  int32_t preferred_sessions = 1;
  // With fewer a part of the device idles: one for each card.
  int32_t least_sessions = 1;
  // Whether a pass runs on its caller's thread and so can pause
  // (Session::SetPauses).
  bool pauses = false;
  std::string weights_sha256;  // lower-case hex
  std::string fingerprint;     // of all that determines a vector
                               // (fingerprint.h)
  std::string tokenizer;       // "WordPiece"
  ParameterCounts parameters;
  std::vector<std::string>
      notes;  // for the log: what was ignored or chosen, and why
};

class Model {
 public:
  // Where the folder holds a SHA256SUMS, its files are checked against it
  // first. Errors as in CheckManifest, LoadModelConfig, CheckpointReader and
  // Tokenizer; also DATA_LOSS when the tokenizer's vocabulary is larger than
  // the token table. RESOURCE_EXHAUSTED if memory is unavailable. Throws
  // nothing.
  static absl::StatusOr<std::shared_ptr<const Model>> Load(
      const std::string& folder, const ModelOptions& options);
  virtual ~Model() = default;

  virtual const ModelInfo& info() const = 0;
  virtual const Tokenizer& tokenizer() const = 0;
  // What the position scheme has for each position, for inspection
  // (position_inspection.h): the rows [P,E] that the embedding block adds to
  // the tokens', or a rotation's cosines and sines [P,dims] (RotationRows).
  virtual const HostMatrix& position_rows() const = 0;
  // RESOURCE_EXHAUSTED if memory is unavailable. The Model must outlive its
  // Sessions.
  virtual absl::StatusOr<std::unique_ptr<Session>> NewSession(
      const SessionOptions& options) const = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_MODEL_H_
