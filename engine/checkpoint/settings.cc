#include "engine/checkpoint/settings.h"

#include "absl/strings/str_cat.h"

namespace encoderd {

std::string Settings::key(const std::string& setting) const {
  const auto found = architecture_.keys.find(setting);
  return found == architecture_.keys.end() ? "" : found->second;
}

absl::StatusOr<int64_t> Settings::Int(const std::string& setting, int64_t min,
                                      int64_t max,
                                      std::optional<int64_t> fallback) const {
  const Json* value = defaults_.Find(setting);
  if (value != nullptr && value->is_number()) fallback = value->get<int64_t>();
  const std::string name = key(setting);
  if (name.empty()) return fallback.value_or(0);
  return fields_.Int(name, min, max, fallback);
}

absl::StatusOr<double> Settings::Number(const std::string& setting, double min,
                                        double max) const {
  std::optional<double> fallback;
  const Json* value = defaults_.Find(setting);
  if (value != nullptr) fallback = value->get<double>();
  const std::string name = key(setting);
  if (name.empty()) return fallback.value_or(0);
  return fields_.Number(name, min, max, fallback);
}

absl::StatusOr<std::string> Settings::String(const std::string& setting) const {
  return fields_.String(key(setting), Default(setting));
}

std::optional<std::string> Settings::Default(const std::string& setting) const {
  const Json* value = defaults_.Find(setting);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return value->get<std::string>();
}

absl::Status Unsupported(const JsonFields& fields, absl::string_view key,
                         absl::string_view supported) {
  const auto value = fields.object().find(std::string(key));
  const bool there = value != fields.object().end();
  return absl::UnimplementedError(absl::StrCat(
      fields.name(), ": ", key, " ", there ? ShowJson(*value) : "",
      " is not supported", supported.empty() ? "" : "; ", supported));
}

}  // namespace encoderd
