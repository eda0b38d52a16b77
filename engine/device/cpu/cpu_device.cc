#include "engine/device/cpu/cpu_device.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/device/check_rotation.h"
#include "engine/device/cpu/cpu_executor.h"
#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/product.h"

namespace encoderd {
namespace cpu {
namespace {

// dtype: kF32 or kBF16.
const Kernels& KernelsFor(DType dtype, Isa isa) {
  const Kernels* kernels = nullptr;
  if (dtype == DType::kBF16 && HasFastBf16(isa)) kernels = Avx512Bf16Kernels();
  if (kernels == nullptr && isa >= Isa::kAvx512) kernels = Avx512Kernels(dtype);
  if (kernels == nullptr && isa >= Isa::kAvx2) kernels = Avx2Kernels(dtype);
  return kernels == nullptr ? *PortableKernels(dtype) : *kernels;
}

// That of the tables; where they differ, they become floats.
DType MakeDTypesOne(EmbeddingWeights* weights) {
  HostTable* const tables[] = {&weights->token, &weights->position,
                               &weights->segment};
  const DType dtype = weights->token.dtype;
  const bool same = std::all_of(
      std::begin(tables), std::end(tables), [dtype](const HostTable* table) {
        return table->rows == 0 || table->dtype == dtype;
      });
  if (same) return dtype;
  for (HostTable* table : tables) {
    if (table->dtype != DType::kF32) *table = table->Widened();
  }
  return DType::kF32;
}

const ProductKernels& ProductsFor(DType dtype, Isa isa) {
  const ProductKernels* products = nullptr;
  if (dtype == DType::kBF16 && isa >= Isa::kAvx512Amx)
    products = Avx512AmxProducts();
  return products == nullptr ? KernelsFor(dtype, isa) : *products;
}

// For a CPU that HasVnni. isa: kAvx512 or newer.
const ProductKernels* Int8ProductsFor(Isa isa) {
  const ProductKernels* products = nullptr;
  if (isa >= Isa::kAvx512Bf16) products = Avx512VnniBf16Products();
  return products == nullptr ? Avx512VnniProducts() : products;
}

class CpuDevice : public Device {
 public:
  // int8: the products of weights that allow 8 bits; null: those of the dtype.
  CpuDevice(DType dtype, Isa isa, const ProductKernels* int8,
            std::shared_ptr<Team> team)
      : kernels_(KernelsFor(dtype, isa)),
        products_(ProductsFor(dtype, isa)),
        int8_(int8),
        isa_(isa),
        team_(team == nullptr ? SharedTeam() : std::move(team)) {}

  std::string name() const override {
    return absl::StrCat("cpu (", CpuModelName(), ", ", IsaName(isa_), ")");
  }
  DType dtype() const override {
    return kernels_.bf16 ? DType::kBF16 : DType::kF32;
  }
  std::string products() const override {
    return int8_ == nullptr ? Device::products() : "int8";
  }
  int32_t preferred_sessions() const override { return AvailableCores(); }
  bool pauses() const override { return true; }
  int64_t default_batch_tokens() const override { return 1024; }

  absl::Status ExpectModel(const ModelSizes& sizes,
                           const std::vector<WeightSize>& weights) override {
    sizes_ = sizes;
    int64_t bytes = 0;
    for (const WeightSize& weight : weights) {
      if (weight.kind == WeightSize::Kind::kLinear)
        bytes += MostPackedBytes(weight);
    }
    weight_memory_.Reserve(bytes);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<DeviceLinear>> PrepareLinear(
      const LinearWeights& weights, Activation activation) override {
    const ProductKernels& kernels =
        int8_ != nullptr && weights.allow_int8 ? *int8_ : products_;
    if (&kernels == int8_ && weights.weight.cols > kMostInt8Columns) {
      return absl::UnimplementedError(
          absl::StrCat("int8 products of ", weights.weight.cols,
                       " columns are not supported; at most ", kMostInt8Columns,
                       "; choose products dtype"));
    }
    absl::StatusOr<Product> product =
        Product::Create(kernels, weights, activation, &weight_memory_);
    if (!product.ok()) return product.status();
    product_bytes_ =
        std::max(product_bytes_, product->scratch_bytes(kProductRows));
    return std::unique_ptr<DeviceLinear>(
        std::make_unique<CpuLinear>(*std::move(product)));
  }

  absl::StatusOr<std::unique_ptr<DeviceNorm>> PrepareNorm(NormWeights weights,
                                                          float eps) override {
    auto norm = std::make_unique<CpuNorm>(std::move(weights));
    norm->norm = RefTo(norm->memory, eps);
    return std::unique_ptr<DeviceNorm>(std::move(norm));
  }

  absl::StatusOr<std::unique_ptr<DeviceEmbeddings>> PrepareEmbeddings(
      EmbeddingWeights weights, float eps) override {
    const DType dtype = MakeDTypesOne(&weights);
    auto embeddings = std::make_unique<CpuEmbeddings>(std::move(weights));
    const EmbeddingWeights& held = embeddings->memory;
    const auto rows = [](const HostTable& table) {
      return table.rows == 0 ? nullptr : table.data();
    };
    embeddings->tables = {rows(held.token), rows(held.position),
                          rows(held.segment), dtype};
    embeddings->norm = RefTo(held.norm, eps);
    return std::unique_ptr<DeviceEmbeddings>(std::move(embeddings));
  }

  absl::StatusOr<std::unique_ptr<DeviceAttentionBias>> PrepareAttentionBias(
      HostMatrix biases) override {
    HostMatrix rows = {biases.rows, biases.cols + kBiasPadding, {}};
    rows.data.resize(rows.rows * rows.cols);
    for (int64_t head = 0; head < biases.rows; ++head) {
      std::copy_n(biases.Row(head), biases.cols,
                  rows.data.begin() + head * rows.cols);
    }
    auto prepared = std::make_unique<CpuAttentionBias>(std::move(rows));
    prepared->bias = prepared->memory.data.data() + biases.cols / 2;
    prepared->bias_stride = static_cast<int32_t>(prepared->memory.cols);
    return std::unique_ptr<DeviceAttentionBias>(std::move(prepared));
  }

  absl::StatusOr<std::unique_ptr<DeviceRotation>> PrepareRotation(
      HostMatrix cos, HostMatrix sin) override {
    const absl::Status status = CheckRotation(cos, sin, sizes_);
    if (!status.ok()) return status;
    auto rotation = std::make_unique<CpuRotation>(
        std::make_pair(std::move(cos), std::move(sin)));
    rotation->cos = rotation->memory.first.data.data();
    rotation->sin = rotation->memory.second.data.data();
    rotation->pairs = static_cast<int32_t>(rotation->memory.first.cols);
    return std::unique_ptr<DeviceRotation>(std::move(rotation));
  }

  absl::StatusOr<std::unique_ptr<Executor>> NewExecutor(
      const ExecutorLimits& limits) const override {
    return NewCpuExecutor(kernels_, limits, product_bytes_, team_.get());
  }

 private:
  // The larger of what products_ and int8_ pack it into.
  int64_t MostPackedBytes(const WeightSize& weight) const {
    const auto bytes = [&weight](const ProductKernels& kernels) {
      return Product::PackedBytes(kernels, weight.rows, weight.cols);
    };
    return int8_ == nullptr ? bytes(products_)
                            : std::max(bytes(products_), bytes(*int8_));
  }

  static NormRef RefTo(const NormWeights& weights, float eps) {
    if (weights.gain.empty()) return {};
    return {weights.gain.data(), weights.bias.data(), eps};
  }

  const Kernels& kernels_;
  const ProductKernels& products_;
  const ProductKernels* const int8_;
  const Isa isa_;
  const std::shared_ptr<Team> team_;
  ModelSizes sizes_;  // of the expected model
  WeightMemory weight_memory_;
  int64_t product_bytes_ = 0;  // the most that a product asks for
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenCpu(DType dtype, Isa isa,
                                                std::shared_ptr<Team> team) {
  if (dtype != DType::kF32 && dtype != DType::kBF16) {
    return absl::UnimplementedError(
        absl::StrCat("dtype ", DTypeName(dtype),
                     " is not supported on a CPU; choose fp32 or bf16"));
  }
  return std::unique_ptr<Device>(
      std::make_unique<CpuDevice>(dtype, isa, nullptr, std::move(team)));
}

absl::StatusOr<std::unique_ptr<Device>> OpenInt8Cpu(
    Isa isa, std::shared_ptr<Team> team) {
  if (!HasVnni() || Avx512VnniProducts() == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("int8 products need avx512_vnni; this CPU (",
                     CpuModelName(), ") lacks it; choose products dtype"));
  }
  if (isa < Isa::kAvx512) {
    return absl::UnimplementedError(absl::StrCat(
        "int8 products need at least avx512; device \"cpu:", IsaName(isa),
        "\" excludes it; choose device cpu or cpu:avx512, or products dtype"));
  }
  return std::unique_ptr<Device>(std::make_unique<CpuDevice>(
      DType::kBF16, isa, Int8ProductsFor(isa), std::move(team)));
}

}  // namespace cpu
}  // namespace encoderd
