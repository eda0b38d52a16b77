#include "tests/support/safetensors_writer.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace encoderd {

std::string SafetensorsBytes(const std::string& header,
                             const std::string& data) {
  std::string bytes;
  const uint64_t length = header.size();
  for (int i = 0; i < 8; ++i) {
    bytes.push_back(static_cast<char>(length >> (8 * i)));
  }
  return bytes + header + data;
}

std::string SafetensorsBytes(const std::vector<TensorToWrite>& tensors) {
  std::vector<std::string> entries;
  std::string data;
  for (const TensorToWrite& tensor : tensors) {
    entries.push_back(absl::StrCat(
        "\"", tensor.name, "\":{\"dtype\":\"", tensor.dtype, "\",\"shape\":[",
        absl::StrJoin(tensor.shape, ","), "],\"data_offsets\":[", data.size(),
        ",", data.size() + tensor.bytes.size(), "]}"));
    data += tensor.bytes;
  }
  return SafetensorsBytes(absl::StrCat("{", absl::StrJoin(entries, ","), "}"),
                          data);
}

std::string FloatBytes(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  if (!values.empty()) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  return bytes;
}

TensorToWrite FloatTensor(const std::string& name, std::vector<int64_t> shape,
                          const std::vector<float>& values) {
  return {name, "F32", std::move(shape), FloatBytes(values)};
}

}  // namespace encoderd
