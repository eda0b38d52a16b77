// Fields of Protobuf messages by hand, for messages that no parser would write.
#ifndef ENCODERD_TESTS_SUPPORT_FIELD_BYTES_H_
#define ENCODERD_TESTS_SUPPORT_FIELD_BYTES_H_

#include <string>

namespace encoderd {

// A field that holds `content`; tag: its number and wire type 2, one byte.
inline std::string Field(char tag, const std::string& content) {
  std::string bytes(1, tag);
  size_t length = content.size();
  for (; length >= 128; length >>= 7) {
    bytes += static_cast<char>(length | 128);
  }
  return bytes + static_cast<char>(length) + content;
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_FIELD_BYTES_H_
