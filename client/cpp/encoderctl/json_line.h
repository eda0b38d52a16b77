// JSON as commands print it. Thread-safe: a pure function.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_JSON_LINE_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_JSON_LINE_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace encoderd::ctl {

// `json` on one line, without its end. Control characters are escaped, those
// that JSON allows included (U+007F to U+009F): a server must not control the
// terminal. What is not UTF-8 becomes U+FFFD.
std::string JsonLine(const nlohmann::ordered_json& json);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_JSON_LINE_H_
