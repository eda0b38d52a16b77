#include "engine/device/cuda/open_cards.h"

#include <numeric>
#include <set>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/device/cuda/cuda_device.h"
#include "engine/device/several_devices.h"

namespace encoderd {
namespace cuda {
namespace {

std::string KindOf(const Card& card) {
  return absl::StrCat(card.name, " (compute capability ", card.compute_major,
                      ".", card.compute_minor, ")");
}

// The cards that are asked for, all of one kind: that kind.
absl::StatusOr<Card> CheckCards(Runtime* runtime,
                                const std::vector<int32_t>& ordinals,
                                int32_t count) {
  std::set<int32_t> named;
  Card first;
  for (const int32_t ordinal : ordinals) {
    if (ordinal < 0 || ordinal >= count) return NoSuchCard(ordinal, count);
    if (!named.insert(ordinal).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("cuda:", ordinal, " is named twice"));
    }
    Card card;
    const int code = runtime->Describe(ordinal, &card);
    if (code != 0) {
      return absl::UnavailableError(
          absl::StrCat("cuda:", ordinal, ": ", runtime->ErrorText(code)));
    }
    if (named.size() == 1) first = card;
    if (KindOf(card) == KindOf(first)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "cuda:", ordinals.front(), " is ", KindOf(first), ", cuda:", ordinal,
        " is ", KindOf(card),
        ": the cards of one server must be of one kind, so that a text has the "
        "same bits on each; name one kind"));
  }
  return first;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenCards(
    const std::shared_ptr<Runtime>& runtime, const NewLibrary& new_library,
    std::vector<int32_t> ordinals, const std::string& dtype,
    const std::string& tuning_folder, const std::string& operands) {
  int32_t count = 0;
  const int code = runtime->CountDevices(&count);
  if (code != 0 || count == 0) {
    return absl::UnavailableError(
        absl::StrCat("no CUDA device: ",
                     code == 0 ? "none is visible" : runtime->ErrorText(code)));
  }
  if (ordinals.empty()) {
    ordinals.resize(count);
    std::iota(ordinals.begin(), ordinals.end(), 0);
  }
  const absl::StatusOr<Card> card = CheckCards(runtime.get(), ordinals, count);
  if (!card.ok()) return card.status();
  std::shared_ptr<TuningStore> store;
  std::vector<std::unique_ptr<Device>> devices;
  for (const int32_t ordinal : ordinals) {
    // A library's handle is of the device in use.
    const int used = runtime->UseDevice(ordinal);
    if (used != 0) {
      return absl::UnavailableError(
          absl::StrCat("cuda:", ordinal, ": ", runtime->ErrorText(used)));
    }
    absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> library = new_library();
    if (!library.ok()) return library.status();
    if (store == nullptr) {
      store = std::make_shared<TuningStore>(
          tuning_folder, TunedForCard(*card, (*library)->name()));
    }
    absl::StatusOr<std::unique_ptr<Device>> device =
        NewCudaDevice(runtime,
                      absl::make_unique<TunedProducts>(*std::move(library),
                                                       store, runtime, ordinal),
                      ordinal, dtype, operands);
    if (!device.ok()) return device.status();
    devices.push_back(*std::move(device));
  }
  return devices.size() == 1 ? std::move(devices.front())
                             : JoinDevices(std::move(devices));
}

}  // namespace cuda
}  // namespace encoderd
