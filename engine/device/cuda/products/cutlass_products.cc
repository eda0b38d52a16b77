#include "engine/device/cuda/products/cutlass_products.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/device/cuda/products/tuning.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int32_t kComputeMajor = 9, kComputeMinor = 0;
constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();
constexpr uintptr_t kAlignment = 16;  // of addresses, for TMA
constexpr int64_t kMultiple = 8;      // of in and out, so that rows are aligned

bool IsAlignedForTma(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % kAlignment == 0;
}

// Why no tile computes `args`; empty: some may.
std::string Refusal(const ProductArgs& args) {
  if (args.operands != Operands::kElement) return "rows are in e4m3";
  if (args.element == DType::kF32) return "elements have 32 bits, not 16";
  if (args.epilogue != Epilogue::kBiasGeluErf)
    return "only the epilogue bias_gelu is supported";
  const std::pair<const char*, int64_t> sizes[] = {{"in", args.in},
                                                   {"out", args.out}};
  for (const auto& [name, size] : sizes) {
    if (size <= 0 || size > kMaxSize || size % kMultiple != 0) {
      return absl::StrCat(name, " is ", size, ", not a multiple of ", kMultiple,
                          " of at most ", kMaxSize);
    }
  }
  for (const void* address : {args.weight, args.bias}) {
    if (!IsAlignedForTma(address)) {
      return absl::StrCat(address == args.weight ? "weight" : "bias",
                          " is not aligned to ", kAlignment, " bytes");
    }
  }
  return "";
}

CutlassGeluArgs ArgsOf(const ProductArgs& args, int32_t processors) {
  CutlassGeluArgs gelu = {};
  gelu.element = args.element;
  gelu.weight = args.weight;
  gelu.bias = static_cast<const float*>(args.bias);
  gelu.in = static_cast<int32_t>(args.in);
  gelu.out = static_cast<int32_t>(args.out);
  gelu.processors = processors;
  return gelu;
}

class CutlassProduct : public Product {
 public:
  CutlassProduct(std::shared_ptr<const CutlassParts> parts,
                 const CutlassGeluTile& tile, const CutlassGeluArgs& args)
      : parts_(std::move(parts)), tile_(tile), args_(args) {}

  absl::Status Run(const void* x, int64_t rows, void* y,
                   const OpStream& stream) const override {
    if (rows == 0) return absl::OkStatus();
    if (rows < 0 || rows > kMaxSize) {
      return absl::InvalidArgumentError(absl::StrCat(
          "CUTLASS ", tile_.name, ": ", rows, " rows; at most ", kMaxSize));
    }
    if (!IsAlignedForTma(x) || !IsAlignedForTma(y)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "CUTLASS ", tile_.name, ": ", IsAlignedForTma(x) ? "y" : "x",
          " is not aligned to ", kAlignment, " bytes"));
    }
    CutlassGeluArgs args = args_;
    args.x = x;
    args.y = y;
    args.rows = static_cast<int32_t>(rows);
    const int code = tile_.start(args, stream);
    if (code == 0) return absl::OkStatus();
    const std::string message =
        absl::StrCat("CUTLASS ", tile_.name, ": ", parts_->error_text(code));
    return CanGoOnAfter(code) ? absl::InternalError(message)
                              : absl::DataLossError(message);
  }

 private:
  const std::shared_ptr<const CutlassParts> parts_;
  const CutlassGeluTile tile_;
  const CutlassGeluArgs args_;
};

class CutlassLibrary : public AlgorithmLibrary {
 public:
  explicit CutlassLibrary(CutlassParts parts)
      : parts_(std::make_shared<const CutlassParts>(std::move(parts))) {}

  std::string name() const override {
    return absl::StrCat("CUTLASS ", parts_->version);
  }

  absl::StatusOr<std::vector<Algorithm>> Candidates(const ProductArgs& args,
                                                    int64_t rows) override {
    const std::string refusal = Refusal(args);
    if (!refusal.empty()) return None(args, refusal);
    std::vector<Algorithm> candidates;
    std::string why = "there are no tiles";
    for (const CutlassGeluTile& tile : parts_->tiles) {
      const absl::Status checked = CheckTile(args, tile, kCheckedRows);
      if (checked.ok()) {
        candidates.push_back(tile.name);
      } else if (!absl::IsInvalidArgument(checked)) {
        return checked;
      } else {
        why = std::string(checked.message());
      }
    }
    if (candidates.empty()) return None(args, why);
    return candidates;
  }

  absl::Status Check(const ProductArgs& args, const Algorithm& algorithm,
                     absl::Span<const int64_t> rows) override {
    const auto tile = Find(algorithm);
    return tile.ok() ? CheckTile(args, **tile, rows) : tile.status();
  }

  std::string Describe(const Algorithm& algorithm) const override {
    return absl::StrCat("tile ", absl::CHexEscape(algorithm));
  }

  absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args, const Algorithm& algorithm) override {
    const auto tile = Find(algorithm);
    if (!tile.ok()) return tile.status();
    const absl::Status checked = CheckTile(args, **tile, kCheckedRows);
    if (!checked.ok()) return checked;
    return std::unique_ptr<Product>(std::make_unique<CutlassProduct>(
        parts_, **tile, ArgsOf(args, parts_->processors)));
  }

 private:
  absl::Status None(const ProductArgs& args, const std::string& why) const {
    return absl::UnimplementedError(absl::StrCat(
        name(), " has no product ", KeyText(KeyOf(args)), ": ", why));
  }
  absl::StatusOr<const CutlassGeluTile*> Find(const Algorithm& algorithm) const;
  absl::Status CheckTile(const ProductArgs& args, const CutlassGeluTile& tile,
                         absl::Span<const int64_t> counts) const;

  const std::shared_ptr<const CutlassParts> parts_;
};

absl::StatusOr<const CutlassGeluTile*> CutlassLibrary::Find(
    const Algorithm& algorithm) const {
  std::vector<std::string> names;
  for (const CutlassGeluTile& tile : parts_->tiles) {
    if (algorithm == tile.name) return &tile;
    names.push_back(tile.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name(), " has no tile '", absl::CHexEscape(algorithm),
                   "'; available: ", absl::StrJoin(names, ", ")));
}

absl::Status CutlassLibrary::CheckTile(const ProductArgs& args,
                                       const CutlassGeluTile& tile,
                                       absl::Span<const int64_t> counts) const {
  const std::string refusal = Refusal(args);
  if (!refusal.empty())
    return absl::InvalidArgumentError(absl::StrCat(tile.name, ": ", refusal));
  CutlassGeluArgs gelu = ArgsOf(args, parts_->processors);
  for (const int64_t rows : counts) {
    gelu.rows = static_cast<int32_t>(rows);
    if (!tile.can_implement(gelu)) {
      return absl::InvalidArgumentError(absl::StrCat(
          tile.name, ": not for ", rows, " rows of ", KeyText(KeyOf(args))));
    }
    const int64_t workspace = tile.workspace_bytes(gelu);
    if (workspace != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(tile.name, ": takes ", workspace,
                       " bytes of workspace for ", rows, " rows"));
    }
  }
  const int code = tile.prepare(args.element);
  if (code == 0) return absl::OkStatus();
  const std::string message =
      absl::StrCat(tile.name, ": ", parts_->error_text(code));
  return CanGoOnAfter(code) ? absl::InvalidArgumentError(message)
                            : absl::DataLossError(message);
}

}  // namespace

absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> NewCutlassLibraryOf(
    const Card& card, CutlassParts parts) {
  if (card.compute_major != kComputeMajor ||
      card.compute_minor != kComputeMinor) {
    return absl::UnimplementedError(absl::StrCat(
        "CUTLASS ", parts.version, ": its kernels are for compute capability ",
        kComputeMajor, ".", kComputeMinor, ", and ", card.name, " has ",
        card.compute_major, ".", card.compute_minor));
  }
  return std::unique_ptr<AlgorithmLibrary>(
      std::make_unique<CutlassLibrary>(std::move(parts)));
}

}  // namespace cuda
}  // namespace encoderd
