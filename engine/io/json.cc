#include "engine/io/json.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/io/file.h"

namespace encoderd {
namespace {

// Builds the value and refuses duplicate keys and depth on the way. The
// pointers of stack_ stay valid: a container gets no new member while one of
// its members is open.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(int max_depth) : max_depth_(max_depth) {}

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(int64_t value) override { return Add(value); }
  bool number_unsigned(uint64_t value) override { return Add(value); }
  bool number_float(double value, const std::string&) override {
    return Add(value);
  }
  bool string(std::string& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return Fail("contains binary data"); }
  bool start_object(size_t) override { return Enter(Json::object()); }
  bool start_array(size_t) override { return Enter(Json::array()); }
  bool end_object() override { return Leave(); }
  bool end_array() override { return Leave(); }

  bool key(std::string& key) override {
    Json& object = *stack_.back();
    if (object.contains(key)) {
      return Fail(absl::StrCat("has the key ", Quote(key), " twice"));
    }
    slot_ = &object[key];
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // After the library's name for the error, "[json.exception...] ".
    absl::string_view what = error.what();
    const size_t name = what.find("] ");
    if (name != what.npos) what.remove_prefix(name + 2);
    return Fail(absl::StrCat("is not JSON near byte ", position, ": ",
                             what.substr(0, 200)));
  }

  const std::string& error() const { return error_; }
  Json Take() { return std::move(root_); }

 private:
  bool Fail(std::string error) {
    error_ = std::move(error);
    return false;
  }

  Json* Place(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    *slot_ = std::move(value);
    return slot_;
  }

  bool Add(Json value) {
    Place(std::move(value));
    return true;
  }

  bool Enter(Json container) {
    if (static_cast<int>(stack_.size()) >= max_depth_) {
      return Fail(absl::StrCat("is nested deeper than ", max_depth_));
    }
    stack_.push_back(Place(std::move(container)));
    return true;
  }

  bool Leave() {
    stack_.pop_back();
    return true;
  }

  const int max_depth_;
  Json root_;
  std::vector<Json*> stack_;
  Json* slot_ = nullptr;
  std::string error_;
};

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view name,
                               const JsonLimits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.max_bytes) {
    return absl::DataLossError(absl::StrCat(name, " has ", text.size(),
                                            " bytes; at most ",
                                            limits.max_bytes, " are read"));
  }
  if (absl::StartsWith(text, "\xEF\xBB\xBF")) {
    return absl::DataLossError(
        absl::StrCat(name, " starts with a byte order mark"));
  }
  Builder builder(limits.max_depth);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    return absl::DataLossError(absl::StrCat(name, " ", builder.error()));
  }
  return builder.Take();
}

absl::StatusOr<Json> ReadJsonObject(const Folder& folder,
                                    absl::string_view name,
                                    const JsonLimits& limits) {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(folder, name, limits.max_bytes);
  if (!text.ok()) return text.status();
  absl::StatusOr<Json> json = ParseJson(*text, name, limits);
  if (json.ok() && !json->is_object()) {
    return absl::DataLossError(
        absl::StrCat(name, " holds ", ShowJson(*json), "; expected an object"));
  }
  return json;
}

absl::StatusOr<Json> ReadOptionalJsonObject(const Folder& folder,
                                            absl::string_view name,
                                            const JsonLimits& limits) {
  const absl::StatusOr<bool> exists = FileExists(folder, name);
  if (!exists.ok()) return exists.status();
  if (!*exists) return Json::object();
  return ReadJsonObject(folder, name, limits);
}

const Json* JsonFields::Find(absl::string_view key) const {
  const auto found = object_.find(std::string(key));
  if (found == object_.end() || found->is_null()) return nullptr;
  return &*found;
}

bool JsonFields::IsNull(absl::string_view key) const {
  const auto found = object_.find(std::string(key));
  return found != object_.end() && found->is_null();
}

absl::StatusOr<int64_t> JsonFields::Int(absl::string_view key, int64_t min,
                                        int64_t max,
                                        std::optional<int64_t> fallback) const {
  const Json* value = Find(key);
  if (value == nullptr && fallback.has_value()) return *fallback;
  const std::string wanted =
      absl::StrCat("expected a whole number from ", min, " to ", max);
  if (value == nullptr || !value->is_number_integer()) return Bad(key, wanted);
  if (value->is_number_unsigned() &&
      value->get<uint64_t>() >
          static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return Bad(key, wanted);
  }
  const int64_t number = value->get<int64_t>();
  if (number < min || number > max) return Bad(key, wanted);
  return number;
}

absl::StatusOr<double> JsonFields::Number(
    absl::string_view key, double min, double max,
    std::optional<double> fallback) const {
  const Json* value = Find(key);
  if (value == nullptr && fallback.has_value()) return *fallback;
  const std::string wanted =
      absl::StrCat("expected a number from ", min, " to ", max);
  if (value == nullptr || !value->is_number()) return Bad(key, wanted);
  const double number = value->get<double>();
  if (!(number >= min && number <= max)) return Bad(key, wanted);
  return number;
}

absl::StatusOr<bool> JsonFields::Bool(absl::string_view key,
                                      std::optional<bool> fallback) const {
  const Json* value = Find(key);
  if (value == nullptr && fallback.has_value()) return *fallback;
  if (value == nullptr || !value->is_boolean()) {
    return Bad(key, "expected true or false");
  }
  return value->get<bool>();
}

absl::StatusOr<std::string> JsonFields::String(
    absl::string_view key, std::optional<std::string> fallback) const {
  const Json* value = Find(key);
  if (value == nullptr && fallback.has_value()) return *std::move(fallback);
  if (value == nullptr || !value->is_string()) {
    return Bad(key, "expected a string");
  }
  return value->get<std::string>();
}

absl::Status JsonFields::Bad(absl::string_view key,
                             absl::string_view wanted) const {
  const auto value = object_.find(std::string(key));
  return absl::DataLossError(absl::StrCat(
      name_, ": ", key, " is ",
      value == object_.end() ? "missing" : ShowJson(*value), "; ", wanted));
}

std::string ShowJson(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_string()) return Quote(value.get_ref<const std::string&>());
  return value.dump();
}

}  // namespace encoderd
