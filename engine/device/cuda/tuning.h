// Which algorithm computes a product, kept from start to start in a file.
//
// The file has a line for each product, after what it is for and before what
// tells damage:
//
//   encoderd tuning 1
//   card NVIDIA H200
//   compute 9.0
//   library cuBLASLt 130000
//   bf16 384 1536 bias 2f00000000000000...      dtype, in, out, epilogue, bytes
//   sha256 of all lines above
//
// Pure, but for TuningStore's Open and Keep.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_TUNING_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_TUNING_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/device/cuda/products.h"
#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

// Opaque bytes of the library, good for its own version on one kind of card.
using Algorithm = std::string;

// Element, in, out, epilogue: what an algorithm is chosen for.
using ProductKey = std::tuple<Element, int64_t, int64_t, Epilogue>;
ProductKey KeyOf(const ProductArgs& args);
std::string KeyText(const ProductKey& key);  // "bf16 384 1536 bias"

using Choices = std::map<ProductKey, Algorithm>;

// What a choice was made on, and is good for.
struct TunedFor {
  std::string card;  // "NVIDIA H200"
  int32_t compute_major = 0;
  int32_t compute_minor = 0;
  std::string library;  // "cuBLASLt 130000"
};
TunedFor TunedForCard(const Card& card, std::string library);
// "nvidia-h200-9.0-cublaslt-130000.tuning"
std::string TuningFileName(const TunedFor& tuned_for);

std::string FormatTuning(const TunedFor& tuned_for, const Choices& choices);
// DATA_LOSS, saying what is wrong: damaged, of another format, or made on
// another card or library.
absl::StatusOr<Choices> ParseTuning(absl::string_view text,
                                    const TunedFor& tuned_for);

// The choices of a process for one kind of card, and their file. What goes
// wrong with the file is a note and no failure: the choices are made anew.
// Thread rule: one thread at a time.
class TuningStore {
 public:
  // `folder` empty: choices are kept in memory only.
  TuningStore(std::string folder, TunedFor tuned_for);

  // Whether products are to be timed: only where the choice can be kept, so
  // that a text has the same bits after a restart.
  bool timed() const { return !folder_.empty(); }
  // nullptr: no choice has been made.
  const Algorithm* Find(const ProductKey& key) const;
  // A choice for this process alone.
  void Use(const ProductKey& key, const Algorithm& algorithm) {
    choices_[key] = algorithm;
  }
  // A choice for this process and the file. Where another process has chosen
  // for this key meanwhile, its choice stays in the file and is taken, unless
  // it is `refused`.
  void Keep(const ProductKey& key, const Algorithm& algorithm,
            const Algorithm& refused = "");

  void AddNote(std::string note) { notes_.push_back(std::move(note)); }
  // What has been noted since the last call.
  std::vector<std::string> TakeNotes() { return std::exchange(notes_, {}); }

 private:
  // What the file holds; nothing, and a note if `tell`, where it is no good.
  Choices Read(bool tell);

  const std::string folder_;
  const TunedFor tuned_for_;
  const std::string name_;
  Choices choices_;
  bool unwritable_ = false;  // told already
  std::vector<std::string> notes_;
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_TUNING_H_
