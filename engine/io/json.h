// JSON of a model folder: one wrapper around nlohmann-json that throws
// nothing but std::bad_alloc.
//
// Strict where a lenient reader would let two programs read one file
// differently: duplicate keys, a byte order mark, comments and anything after
// the value are refused, and so is what only costs memory: depth and size over
// the limits. Errors are DATA_LOSS, or File::Open's, and name the file.
#ifndef ENCODERD_ENGINE_IO_JSON_H_
#define ENCODERD_ENGINE_IO_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/io/file.h"

namespace encoderd {

using Json = nlohmann::json;

struct JsonLimits {
  int64_t max_bytes = 16 << 20;
  int max_depth = 32;  // nested objects and arrays
};

// Of the files next to config.json: some settings each.
inline constexpr JsonLimits kSmallJson = {.max_bytes = 1 << 20,
                                          .max_depth = 16};

// `name` is used in errors only.
absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view name,
                               const JsonLimits& limits = {});

// The file folder/name, which must hold an object. NOT_FOUND without the file.
absl::StatusOr<Json> ReadJsonObject(const Folder& folder,
                                    absl::string_view name,
                                    const JsonLimits& limits = {});

// Likewise; an empty object where there is no such file.
absl::StatusOr<Json> ReadOptionalJsonObject(const Folder& folder,
                                            absl::string_view name,
                                            const JsonLimits& limits = {});

// Checked access to the members of one object. A member that is null counts as
// absent. The object must outlive the fields.
class JsonFields {
 public:
  // `name`: what errors call the object, e.g. "config.json".
  JsonFields(const Json& object, absl::string_view name)
      : object_(object), name_(name) {}

  const std::string& name() const { return name_; }
  const Json& object() const { return object_; }

  // The member; nullptr when absent or null.
  const Json* Find(absl::string_view key) const;
  // Whether the member is there and null: for those where that is not the same
  // to transformers as absent.
  bool IsNull(absl::string_view key) const;

  // Absent: `fallback`, or DATA_LOSS without one. Another type, or a number
  // outside min..max: DATA_LOSS with key, value and limits. Whole numbers must
  // be written as such: 1.0 and 1e3 are refused.
  absl::StatusOr<int64_t> Int(absl::string_view key, int64_t min, int64_t max,
                              std::optional<int64_t> fallback = {}) const;
  absl::StatusOr<double> Number(absl::string_view key, double min, double max,
                                std::optional<double> fallback = {}) const;
  absl::StatusOr<bool> Bool(absl::string_view key,
                            std::optional<bool> fallback = {}) const;
  absl::StatusOr<std::string> String(
      absl::string_view key, std::optional<std::string> fallback = {}) const;

  // DATA_LOSS: "config.json: KEY is VALUE; WANTED".
  absl::Status Bad(absl::string_view key, absl::string_view wanted) const;

 private:
  const Json& object_;
  std::string name_;
};

// *out = the value, or keeps the first error, so that a list of settings reads
// as a list.
template <typename T, typename U>
void Take(absl::StatusOr<T> value, U* out, absl::Status* status) {
  if (value.ok()) {
    *out = static_cast<U>(*std::move(value));
  } else {
    status->Update(value.status());
  }
}

// A value for an error message, shortened as by Quote.
std::string ShowJson(const Json& value);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_IO_JSON_H_
