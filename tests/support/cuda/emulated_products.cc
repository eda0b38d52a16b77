#include "tests/support/cuda/emulated_products.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "engine/device/cuda/kernels/elements.h"
#include "engine/device/cuda/kernels/primitives.h"
#include "tests/support/cuda/emulated_stream.h"

namespace encoderd {
namespace cuda {
namespace {

float Apply(Epilogue epilogue, float value) {
  switch (epilogue) {
    case Epilogue::kBiasRelu:
      return std::fmax(value, 0.0f);
    case Epilogue::kBiasGeluTanh:
      return 0.5f * value *
             (1.0f + std::tanh(0.79788456f *
                               (value + 0.044715f * value * value * value)));
    case Epilogue::kBiasGeluErf:
      return 0.5f * value * (1.0f + std::erf(value * 0.70710678118654752f));
    case Epilogue::kBias:
    case Epilogue::kNone:
      break;
  }
  return value;
}

class EmulatedProduct : public Product {
 public:
  explicit EmulatedProduct(const ProductArgs& args) : args_(args) {}

  absl::Status Run(const void* x, int64_t rows, void* y,
                   const OpStream& stream) const override {
    return RunAdding(x, rows, nullptr, y, stream);
  }
  bool adds_residual() const override { return true; }
  absl::Status RunAdding(const void* x, int64_t rows, const void* residual,
                         void* y, const OpStream& stream) const override {
    if (x == y || (residual != nullptr && (residual == x || residual == y)))
      return absl::InternalError("a product in place");
    emulation::Put(stream.stream, [=, this] {
      return WithElement(args_.element, [&]<typename T>() {
        Multiply(Widen<T>(x, rows), Widen<T>(args_.weight, args_.out), rows,
                 static_cast<const T*>(residual), static_cast<T*>(y));
        return 0;
      });
    });
    return absl::OkStatus();
  }

 private:
  struct Wide {
    std::vector<float> values;  // [rows,in]
    std::vector<float> scales;  // [rows]
  };

  template <typename T>
  Wide Widen(const void* data, int64_t rows) const {
    const int64_t count = rows * args_.in;
    Wide wide = {std::vector<float>(count), std::vector<float>(rows, 1.0f)};
    if (args_.operands == Operands::kE4m3) {
      const auto* codes = static_cast<const uint8_t*>(data);
      for (int64_t i = 0; i < count; ++i)
        wide.values[i] = emulation::FromE4m3(codes[i]);
      std::memcpy(wide.scales.data(), codes + count, 4 * rows);
    } else {
      const auto* values = static_cast<const T*>(data);
      for (int64_t i = 0; i < count; ++i) wide.values[i] = ToFloat(values[i]);
    }
    return wide;
  }

  template <typename T>
  void Multiply(const Wide& x, const Wide& w, int64_t rows, const T* residual,
                T* y) const {
    const auto bias = [this](int64_t n) {
      if (args_.epilogue == Epilogue::kBiasGeluErf)
        return static_cast<const float*>(args_.bias)[n];
      return ToFloat(static_cast<const T*>(args_.bias)[n]);
    };
    for (int64_t n = 0; n < args_.out; ++n) {
      for (int64_t r = 0; r < rows; ++r) {
        const float* from = x.values.data() + r * args_.in;
        const float* by = w.values.data() + n * args_.in;
        float sum = 0.0f;
        for (int64_t k = 0; k < args_.in; ++k) sum += from[k] * by[k];
        sum *= x.scales[r] * w.scales[n];
        if (args_.epilogue != Epilogue::kNone) sum += bias(n);
        sum = Apply(args_.epilogue, sum);
        if (residual != nullptr) sum += ToFloat(residual[r * args_.out + n]);
        FromFloat(sum, y + r * args_.out + n);
      }
    }
  }

  const ProductArgs args_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Product>> EmulatedProducts::Create(
    const ProductArgs& args) {
  if (args.epilogue == Epilogue::kBiasGeluErf)
    return absl::UnimplementedError("the loops have no erf GELU");
  return std::unique_ptr<Product>(new EmulatedProduct(args));
}

absl::StatusOr<std::vector<Algorithm>> EmulatedLibrary::Candidates(
    const ProductArgs& args, int64_t rows) {
  if (args.epilogue == Epilogue::kBiasGeluErf)
    return absl::UnimplementedError("the loops have no erf GELU");
  return std::vector<Algorithm>{"loops", "more loops"};
}

absl::Status EmulatedLibrary::Check(const ProductArgs& args,
                                    const Algorithm& algorithm,
                                    absl::Span<const int64_t> rows) {
  return algorithm == "loops" || algorithm == "more loops"
             ? absl::OkStatus()
             : absl::InvalidArgumentError("no algorithm of this library");
}

absl::StatusOr<std::unique_ptr<Product>> EmulatedLibrary::Create(
    const ProductArgs& args, const Algorithm& algorithm) {
  return EmulatedProducts().Create(args);
}

absl::StatusOr<std::vector<Algorithm>> EmulatedGeluLibrary::Candidates(
    const ProductArgs& args, int64_t rows) {
  if (args.epilogue != Epilogue::kBiasGeluErf || args.element == DType::kF32 ||
      args.operands != Operands::kElement)
    return absl::UnimplementedError("GELU in 16 bits alone");
  return std::vector<Algorithm>{"loops", "more loops"};
}

absl::StatusOr<std::unique_ptr<Product>> EmulatedGeluLibrary::Create(
    const ProductArgs& args, const Algorithm& algorithm) {
  return std::unique_ptr<Product>(new EmulatedProduct(args));
}

}  // namespace cuda
}  // namespace encoderd
