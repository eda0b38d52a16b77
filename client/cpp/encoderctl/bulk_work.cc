#include "client/cpp/encoderctl/bulk_work.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "client/cpp/requests.h"

namespace encoderd::ctl {
namespace {

// The same bytes for the same message, maps included.
std::string Deterministic(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializePartialToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// What changes a row; whether a bad text ends the run does not.
std::string OptionsBytes(client::EmbedOptions options) {
  options.on_error = v1::ON_ERROR_PER_INPUT;
  return Deterministic(client::ToRequest(options).options());
}

}  // namespace

std::string NameWork(const Settings& settings,
                     const client::EmbedOptions& options,
                     const v1::Model& model) {
  struct stat file = {};
  stat(settings.input.c_str(), &file);
  nlohmann::ordered_json json;
  json["journal"] = 1;
  json["input"] = settings.input;
  json["bytes"] = file.st_size;
  json["modified"] = {file.st_mtim.tv_sec, file.st_mtim.tv_nsec};
  json["input_format"] = settings.input_format;
  json["field"] = settings.field;
  // Weights, pooling, dtype, max_len, prompts: whatever the server tells.
  v1::Model told = model;
  told.clear_max_inputs_per_request();
  json["model"] = absl::BytesToHexString(Deterministic(told));
  json["options"] = absl::BytesToHexString(OptionsBytes(options));
  return json.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

std::string Difference(const std::string& earlier, const std::string& now) {
  const auto a = nlohmann::json::parse(earlier, nullptr, false);
  const auto b = nlohmann::json::parse(now, nullptr, false);
  const auto differ = [&](const char* key) {
    return !a.is_object() || !b.is_object() ||
           a.value(key, nlohmann::json()) != b.value(key, nlohmann::json());
  };
  std::vector<std::string> changed;
  if (differ("input")) {
    changed.push_back("the input");
  } else if (differ("bytes") || differ("modified")) {
    changed.push_back("the input's size or time");
  }
  if (differ("input_format") || differ("field")) {
    changed.push_back("--input_format or --field");
  }
  if (differ("model")) changed.push_back("the model");
  if (differ("options")) changed.push_back("the options");
  if (changed.empty()) changed.push_back("the form of the journal");
  return absl::StrJoin(changed, " and ");
}

}  // namespace encoderd::ctl
