#include "engine/device/cuda/open_cards.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/device/cuda/cuda_device.h"

namespace encoderd {
namespace cuda {

absl::StatusOr<std::unique_ptr<Device>> OpenCard(
    std::shared_ptr<Runtime> runtime, const NewLibrary& new_library,
    int32_t ordinal, const std::string& dtype,
    const std::string& tuning_folder) {
  int32_t count = 0;
  const int code = runtime->CountDevices(&count);
  if (code != 0 || count == 0) {
    return absl::UnavailableError(
        absl::StrCat("no CUDA device: ",
                     code == 0 ? "none is visible" : runtime->ErrorText(code)));
  }
  if (ordinal < 0 || ordinal >= count) return NoSuchCard(ordinal, count);
  // A library's handle is of the device in use.
  int used = runtime->UseDevice(ordinal);
  Card card;
  if (used == 0) used = runtime->Describe(ordinal, &card);
  if (used != 0) {
    return absl::UnavailableError(
        absl::StrCat("cuda:", ordinal, ": ", runtime->ErrorText(used)));
  }
  absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> library = new_library();
  if (!library.ok()) return library.status();
  auto store = std::make_shared<TuningStore>(
      tuning_folder, TunedForCard(card, (*library)->name()));
  auto products = absl::make_unique<TunedProducts>(
      *std::move(library), std::move(store), runtime, ordinal);
  return NewCudaDevice(runtime, std::move(products), ordinal, dtype);
}

}  // namespace cuda
}  // namespace encoderd
