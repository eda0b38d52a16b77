#include "client/cpp/encoderctl/json_array_reader.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/json_text.h"

namespace encoderd::ctl {
namespace {

constexpr absl::string_view kBlanks = " \t\r\n";

absl::Status Invalid(const LineReader& in, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(
      "invalid JSON at byte ", in.bytes_read() + 1, ": expected ", wanted));
}

// Where an element ends: at the quote or bracket that closes it, or before what
// follows a number or a word.
class ElementEnd {
 public:
  // Whether `c` is the element's last byte (kLast), past it, or neither.
  enum Place { kInside, kLast, kPast };

  Place Step(char c) {
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
        if (depth_ == 0) return kLast;
      }
      return kInside;
    }
    if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (depth_ == 0) {
      return c == ',' || c == ']' || absl::StrContains(kBlanks, c) ? kPast
                                                                   : kInside;
    } else if (c == '}' || c == ']') {
      return --depth_ == 0 ? kLast : kInside;
    }
    return kInside;
  }

 private:
  bool in_string_ = false;
  bool escaped_ = false;
  int64_t depth_ = 0;
};

}  // namespace

absl::StatusOr<std::optional<char>> JsonArrayReader::Look(
    LineReader* in) const {
  while (true) {
    const auto bytes = in->Peek();
    if (!bytes.ok()) return bytes.status();
    if (bytes->empty()) return std::nullopt;
    const size_t at = bytes->find_first_not_of(kBlanks);
    if (at != absl::string_view::npos) {
      const char found = (*bytes)[at];
      in->Consume(at);
      return std::optional<char>(found);
    }
    in->Consume(bytes->size());
  }
}

absl::Status JsonArrayReader::Begin(LineReader* in) {
  const absl::Status skipped = in->SkipByteOrderMark();
  if (!skipped.ok()) return skipped;
  const auto found = Look(in);
  if (!found.ok()) return found.status();
  if (*found == '[') {
    in->Consume(1);
    return absl::OkStatus();
  }
  if (!found->has_value()) {  // no texts
    ended_ = true;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "the input is not a JSON array, [...]: for a JSON value on each line use "
      "--input_format=jsonl; an array inside an object: take it out, such as "
      "with jq .NAME");
}

bool JsonArrayReader::HoldsRecord(absl::string_view bytes) const {
  size_t at = bytes.find_first_not_of(" \t\r\n,");
  if (at == absl::string_view::npos || bytes[at] == ']') return false;
  ElementEnd end;
  while (at < bytes.size()) {
    if (end.Step(bytes[at++]) != ElementEnd::kInside) return true;
  }
  return false;
}

absl::StatusOr<bool> JsonArrayReader::ReadSeparator(LineReader* in) {
  auto found = Look(in);
  if (!found.ok()) return found.status();
  if (*found == ']') {
    in->Consume(1);
    ended_ = true;
    found = Look(in);
    if (!found.ok()) return found.status();
    if (found->has_value()) return Invalid(*in, "the end after the array");
    return false;
  }
  if (first_) return true;
  if (*found != ',') return Invalid(*in, "a comma or the array's end, ]");
  in->Consume(1);
  return true;
}

absl::StatusOr<bool> JsonArrayReader::ReadElement(LineReader* in,
                                                  std::string* bytes) const {
  ElementEnd end;
  int64_t length = 0;
  auto place = ElementEnd::kInside;
  while (place == ElementEnd::kInside) {
    const auto next = in->Peek();
    if (!next.ok()) return next.status();
    if (next->empty()) return Invalid(*in, "the array's end, ]");
    size_t taken = 0;
    while (place == ElementEnd::kInside && taken < next->size()) {
      place = end.Step((*next)[taken]);
      if (place != ElementEnd::kPast) ++taken;
    }
    length += static_cast<int64_t>(taken);
    if (length <= kMaxTextBytes) bytes->append(next->data(), taken);
    in->Consume(taken);
  }
  return length <= kMaxTextBytes;
}

absl::StatusOr<bool> JsonArrayReader::Next(LineReader* in, std::string* text,
                                           std::string* wrong) {
  if (ended_) return false;
  const auto more = ReadSeparator(in);
  if (!more.ok() || !*more) return more;
  first_ = false;
  const auto found = Look(in);
  if (!found.ok()) return found.status();
  if (!found->has_value() || *found == ',' || *found == ']') {
    return Invalid(*in, "a value");
  }
  std::string bytes;
  const auto whole = ReadElement(in, &bytes);
  if (!whole.ok()) return whole.status();
  if (!*whole) {
    *wrong = absl::StrCat("has more than ", kMaxTextBytes, " bytes");
    return true;
  }
  auto read = JsonText(bytes, field_);
  if (read.ok()) {
    *text = *std::move(read);
  } else {
    *wrong = std::string(read.status().message());
  }
  return true;
}

}  // namespace encoderd::ctl
