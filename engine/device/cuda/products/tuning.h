// The fastest algorithm of each product and bucket of rows, kept from start to
// start in a file. It saves time at start and changes no bits: whatever it
// holds must prove itself again (tuned_products.h).
//
// The file has a line for each choice, preceded by what it is for and followed
// by a digest that shows damage:
//
//   encoderd tuning 3
//   card NVIDIA H200
//   compute 9.0
//   library cuBLASLt 130000
//   bf16 384 1536 bias 128 2f0000...      dtype, in, out, epilogue, rows, bytes
//   bf16 384 384 bias+residual 128 2f...  that may add a residual
//   bf16_e4m3 384 384 bias 128 2f0000...  of rows in e4m3
//   sha256 of all lines above
//
// Pure, but for TuningStore.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_TUNING_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_TUNING_H_

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/device/cuda/products/algorithms.h"
#include "engine/device/cuda/products/products.h"
#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

// What an algorithm is chosen for.
struct ProductKey {
  Element element;
  int64_t in;
  int64_t out;
  Epilogue epilogue;
  Operands operands = Operands::kElement;
  int64_t rows = 0;  // the most of a bucket; 0: all counts
  bool residual = false;

  auto operator<=>(const ProductKey&) const = default;
};
ProductKey KeyOf(const ProductArgs& args);
// "bf16 384 1536 bias", and " 128" for a bucket.
std::string KeyText(const ProductKey& key);

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
// wrong with the file is a note and no failure. Several processes may share a
// file: next to it lies NAME.lock, held by whoever changes it; the last choice
// of a bucket stays.
// Thread rule: one thread at a time.
class TuningStore {
 public:
  // `folder` empty: choices are kept in memory only.
  TuningStore(std::string folder, TunedFor tuned_for);

  // "FOLDER/NAME", empty: there is no file.
  std::string path() const;

  // Of this process or the file; nullptr: none.
  const Algorithm* Find(const ProductKey& key) const;
  // Keeps them, in place of others of the same keys.
  void Keep(const Choices& choices);

  // The algorithm whose bits a product has on every card of this process;
  // nullptr: none yet. It is not in the file, and never changes.
  const Algorithm* Reference(const ProductKey& key) const;
  void SetReference(const ProductKey& key, const Algorithm& algorithm) {
    references_.emplace(key, algorithm);
  }

  void AddNote(std::string note) { notes_.push_back(std::move(note)); }
  // What has been noted since the last call.
  std::vector<std::string> TakeNotes() { return std::exchange(notes_, {}); }

 private:
  // What the file holds; nothing, and a note if `tell`, where it is no good.
  Choices Read(bool tell);
  // Merges what the file holds with `choices`, while no other process does.
  absl::Status Write(const Choices& choices);

  const std::string folder_;
  const TunedFor tuned_for_;
  const std::string name_;
  Choices found_;
  Choices references_;
  bool writable_ = true;  // until a note has said otherwise
  std::vector<std::string> notes_;
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_TUNING_H_
