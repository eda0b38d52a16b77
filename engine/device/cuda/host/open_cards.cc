#include "engine/device/cuda/host/open_cards.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/device/cuda/host/cuda_device.h"
#include "engine/device/cuda/products/gelu_products.h"
#include "engine/device/cuda/products/tuned_products.h"
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
        ": the GPUs of a server must be of one kind, so that a text has the "
        "same bits on each; choose GPUs of one kind"));
  }
  return first;
}

// What all cards of a process share: the choices for each library, and what
// they found out at start.
class Stores {
 public:
  const std::shared_ptr<Agreement> agreement = std::make_shared<Agreement>();

  Stores(std::string folder, const Card& card)
      : folder_(std::move(folder)), card_(card) {}

  std::shared_ptr<TuningStore> Of(const std::string& library) {
    std::shared_ptr<TuningStore>& store = stores_[library];
    if (store == nullptr) {
      store =
          std::make_shared<TuningStore>(folder_, TunedForCard(card_, library));
    }
    return store;
  }

 private:
  const std::string folder_;
  const Card card_;
  std::map<std::string, std::shared_ptr<TuningStore>> stores_;
};

// The products of card `ordinal`, which is in use.
absl::StatusOr<std::unique_ptr<ProductFactory>> NewProducts(
    const std::shared_ptr<Runtime>& runtime, const CardLibraries& libraries,
    const Card& card, int32_t ordinal, int64_t most_rows, Stores* stores) {
  most_rows = std::min(most_rows, FullBatchRows(card.multiprocessors));
  absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> plain = libraries.plain();
  if (!plain.ok()) return plain.status();
  const auto tuned = [&](std::unique_ptr<AlgorithmLibrary> library) {
    std::shared_ptr<TuningStore> store = stores->Of(library->name());
    return std::make_unique<TunedProducts>(std::move(library), std::move(store),
                                           runtime, ordinal, most_rows,
                                           stores->agreement);
  };
  std::unique_ptr<ProductFactory> products = tuned(*std::move(plain));
  if (libraries.fused == nullptr) return products;
  absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> fused =
      libraries.fused(card);
  if (absl::IsUnimplemented(fused.status())) return products;
  if (!fused.ok()) return fused.status();
  return std::unique_ptr<ProductFactory>(std::make_unique<GeluProducts>(
      std::move(products), tuned(*std::move(fused)), runtime, ordinal,
      most_rows, stores->agreement));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenCards(
    const std::shared_ptr<Runtime>& runtime, const CardLibraries& libraries,
    std::vector<int32_t> ordinals, const CardOptions& options) {
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
  Stores stores(options.tuning_folder, *card);
  std::vector<std::unique_ptr<Device>> devices;
  for (const int32_t ordinal : ordinals) {
    // A library's handle is of the device in use.
    const int used = runtime->UseDevice(ordinal);
    if (used != 0) {
      return absl::UnavailableError(
          absl::StrCat("cuda:", ordinal, ": ", runtime->ErrorText(used)));
    }
    absl::StatusOr<std::unique_ptr<ProductFactory>> products = NewProducts(
        runtime, libraries, *card, ordinal, options.most_tuned_rows, &stores);
    if (!products.ok()) return products.status();
    absl::StatusOr<std::unique_ptr<Device>> device = NewCudaDevice(
        runtime, *std::move(products), ordinal, options.dtype, options.operands,
        /*graphs=*/true, options.prove_paths ? stores.agreement : nullptr);
    if (!device.ok()) return device.status();
    devices.push_back(*std::move(device));
  }
  return devices.size() == 1 ? std::move(devices.front())
                             : JoinDevices(std::move(devices));
}

}  // namespace cuda
}  // namespace encoderd
