#include "client/cpp/encoderctl/json_line.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"

namespace encoderd::ctl {

std::string JsonLine(const nlohmann::ordered_json& json) {
  const std::string text = json.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string line;
  line.reserve(text.size());
  // Only strings hold such characters. U+0080 to U+009F are C2 and themselves.
  for (size_t i = 0; i < text.size(); ++i) {
    const bool upper = text[i] == '\xc2' && i + 1 < text.size() &&
                       static_cast<uint8_t>(text[i + 1]) < 0xa0;
    if (upper) ++i;
    if (upper || text[i] == '\x7f') {
      absl::StrAppendFormat(&line, "\\u%04x", static_cast<uint8_t>(text[i]));
    } else {
      line += text[i];
    }
  }
  return line;
}

}  // namespace encoderd::ctl
