// The settings of one config.json: read under the architecture's keys, with its
// defaults. Errors are JsonFields' and name config.json's own key.
#ifndef ENCODERD_ENGINE_CHECKPOINT_SETTINGS_H_
#define ENCODERD_ENGINE_CHECKPOINT_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/architecture.h"
#include "engine/io/json.h"

namespace encoderd {

// Borrows both.
class Settings {
 public:
  Settings(const JsonFields& fields, const Architecture& architecture)
      : fields_(fields),
        architecture_(architecture),
        defaults_(architecture.defaults, "architectures.json") {}

  const JsonFields& fields() const { return fields_; }
  const Architecture& architecture() const { return architecture_; }

  // Its key in config.json; empty: the architecture has no such setting, and
  // the functions below give the default, or 0 without one.
  std::string key(const std::string& setting) const;

  // fallback: where neither config.json nor the architecture says.
  absl::StatusOr<int64_t> Int(const std::string& setting, int64_t min,
                              int64_t max,
                              std::optional<int64_t> fallback = {}) const;
  absl::StatusOr<double> Number(const std::string& setting, double min,
                                double max) const;
  absl::StatusOr<std::string> String(const std::string& setting) const;
  // A default that is text: a word, or a size ("4H").
  std::optional<std::string> Default(const std::string& setting) const;

 private:
  const JsonFields& fields_;
  const Architecture& architecture_;
  const JsonFields defaults_;
};

// Of any layer: far beyond any model, so that a wrong file is named as such.
inline constexpr int64_t kMaxWidth = 1 << 18;

// UNIMPLEMENTED: "config.json: KEY VALUE is not supported; SUPPORTED".
absl::Status Unsupported(const JsonFields& fields, absl::string_view key,
                         absl::string_view supported);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_SETTINGS_H_
