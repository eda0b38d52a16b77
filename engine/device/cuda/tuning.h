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
//   bf16_e4m3 384 384 bias 2f00000000000000...  of rows in e4m3
//   sha256 of all lines above
//
// Pure, but for TuningStore.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_TUNING_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_TUNING_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
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

// What an algorithm is chosen for.
struct ProductKey {
  Element element;
  int64_t in;
  int64_t out;
  Epilogue epilogue;
  Operands operands = Operands::kElement;

  auto operator<=>(const ProductKey&) const = default;
};
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
// wrong with the file is a note and no failure. Stores of several processes may
// share a file: beside it lies NAME.lock, held by who changes it.
// Thread rule: one thread at a time.
class TuningStore {
 public:
  // `folder` empty: choices are kept in memory only.
  TuningStore(std::string folder, TunedFor tuned_for);

  // Whether products are to be timed: only where the choice can be kept, so
  // that a text has the same bits after a restart. Found out by the first call,
  // which makes the folder and writes the file as it is; a note where it fails.
  bool Timed();
  // What this process computes with already; nullptr: nothing. It never
  // changes, and is not what the file gets.
  const Algorithm* Served(const ProductKey& key) const;
  void Serve(const ProductKey& key, const Algorithm& algorithm) {
    served_.emplace(key, algorithm);
  }
  // What the file holds; nullptr: nothing.
  const Algorithm* Kept(const ProductKey& key) const;
  // Adds a choice to the file, unless it holds one for this key that is not
  // `refused`. Gives what the file holds now; nullptr, and a note, where it
  // cannot be written: then nothing more is timed.
  const Algorithm* Keep(const ProductKey& key, const Algorithm& algorithm,
                        const Algorithm& refused = "");

  void AddNote(std::string note) { notes_.push_back(std::move(note)); }
  // What has been noted since the last call.
  std::vector<std::string> TakeNotes() { return std::exchange(notes_, {}); }

 private:
  // What the file holds; nothing, and a note if `tell`, where it is no good.
  Choices Read(bool tell);
  // Changes kept_, brought up to date, and the file, while no other does. A
  // note where that fails.
  bool Change(const std::function<void(Choices*)>& change);

  const std::string folder_;
  const TunedFor tuned_for_;
  const std::string name_;
  Choices kept_;    // in the file
  Choices served_;  // by this process
  std::optional<bool> writable_;
  std::vector<std::string> notes_;
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_TUNING_H_
