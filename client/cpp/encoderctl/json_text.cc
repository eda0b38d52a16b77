#include "client/cpp/encoderctl/json_text.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/cpp/utf8.h"

namespace encoderd::ctl {
namespace {

constexpr size_t kMostKeys = 8;  // that an error names

constexpr int kMostLevels = 64;  // of arrays and objects in each other

// Why `line` cannot be parsed: `what` went wrong up to `byte`.
std::string Explain(const std::string& line, size_t byte,
                    absl::string_view what) {
  const size_t valid = client::ValidUtf8Prefix(line);
  if (valid < line.size()) {
    return absl::StrCat("is not valid UTF-8 at byte ", valid);
  }
  // What follows is the caller's own text.
  what = what.substr(0, what.find("; last read"));
  if (absl::StrContains(what, "surrogate")) {
    return absl::StrCat(
        "has an unpaired surrogate, such as \\ud83d alone, up to byte ", byte,
        ": a character above \\uffff takes two, such as \\ud83d\\ude00");
  }
  return absl::StrCat("is invalid JSON at byte ", byte);
}

// Keeps the one text of a value while it is parsed, in the memory of that text.
class TextHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  TextHandler(const std::string& line, const std::string& field)
      : line_(line), field_(field) {}

  // Once the value was parsed, or a call below returned false.
  absl::StatusOr<std::string> TakeText() {
    if (!wrong_.empty()) return absl::InvalidArgumentError(wrong_);
    if (found_) return std::move(text_);
    const std::string wanted = absl::StrCat(
        "is neither a JSON string nor an object with a string in \"", field_,
        "\"");
    if (has_field_ || keys_.empty()) return absl::InvalidArgumentError(wanted);
    return absl::InvalidArgumentError(
        absl::StrCat(wanted, "; strings are in: ", absl::StrJoin(keys_, ", "),
                     " (--field)"));
  }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }

  bool string(string_t& value) override {
    if (level_ == 0 || (in_object_ && level_ == 1 && key_ == field_)) {
      text_ = std::move(value);
      found_ = true;
    } else if (in_object_ && level_ == 1 && keys_.size() < kMostKeys) {
      keys_.push_back(key_);
    }
    return true;
  }

  bool key(string_t& value) override {
    if (level_ != 1) return true;
    key_ = std::move(value);
    if (key_ != field_) return true;
    if (has_field_) {
      return Refuse(absl::StrCat("has \"", field_, "\" more than once"));
    }
    has_field_ = true;
    return true;
  }

  bool start_object(size_t) override {
    in_object_ |= level_ == 0;
    return Descend();
  }
  bool start_array(size_t) override { return Descend(); }
  bool end_object() override { return Ascend(); }
  bool end_array() override { return Ascend(); }

  bool parse_error(size_t byte, const std::string&,
                   const nlohmann::json::exception& error) override {
    constexpr int kNumberOverflow = 406;
    return Refuse(error.id == kNumberOverflow
                      ? "has a number that no double can hold"
                      : Explain(line_, byte, error.what()));
  }

 private:
  bool Refuse(std::string words) {
    wrong_ = std::move(words);
    return false;
  }
  bool Descend() {
    if (++level_ <= kMostLevels) return true;
    return Refuse(
        absl::StrCat("is nested more than ", kMostLevels, " levels deep"));
  }
  bool Ascend() {
    --level_;
    return true;
  }

  const std::string& line_;
  const std::string& field_;
  int level_ = 0;
  bool in_object_ = false;  // the value is an object
  std::string key_;         // of the object, the last
  std::vector<std::string> keys_;
  bool has_field_ = false;
  bool found_ = false;
  std::string text_;
  std::string wrong_;
};

}  // namespace

absl::StatusOr<std::string> JsonText(const std::string& line,
                                     const std::string& field) {
  TextHandler handler(line, field);
  nlohmann::json::sax_parse(line, &handler);
  return handler.TakeText();
}

}  // namespace encoderd::ctl
