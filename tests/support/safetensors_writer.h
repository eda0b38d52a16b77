// Writes safetensors files for tests: right ones from tensors, and any wrong
// one from a header's text.
#ifndef ENCODERD_TESTS_SUPPORT_SAFETENSORS_WRITER_H_
#define ENCODERD_TESTS_SUPPORT_SAFETENSORS_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

namespace encoderd {

struct TensorToWrite {
  std::string name;
  std::string dtype;  // "F32", ...
  std::vector<int64_t> shape;
  std::string bytes;  // little-endian, row-major
};

// Length, header, data.
std::string SafetensorsBytes(const std::string& header,
                             const std::string& data);
// Tensors in the given order.
std::string SafetensorsBytes(const std::vector<TensorToWrite>& tensors);

// Little-endian F32 bytes.
std::string FloatBytes(const std::vector<float>& values);
TensorToWrite FloatTensor(const std::string& name, std::vector<int64_t> shape,
                          const std::vector<float>& values);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_SAFETENSORS_WRITER_H_
