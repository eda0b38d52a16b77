#include "engine/io/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/io/file.h"

namespace encoderd {
namespace {

constexpr char kIncomplete[] =
    ": the download is incomplete; fetch the model again";

struct DTypeBits {
  const char* name;
  uint64_t bits;
};
constexpr DTypeBits kDTypes[] = {
    {"BOOL", 8},    {"U8", 8},          {"I8", 8},          {"U16", 16},
    {"I16", 16},    {"U32", 32},        {"I32", 32},        {"U64", 64},
    {"I64", 64},    {"F16", 16},        {"BF16", 16},       {"F32", 32},
    {"F64", 64},    {"C64", 64},        {"F8_E4M3", 8},     {"F8_E5M2", 8},
    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6},
    {"F6_E3M2", 6}, {"F4", 4},
};

absl::Status Bad(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("safetensors header ", what));
}

// Reads the events of the JSON straight into entries: a grammar of three
// levels, so that nothing else is ever built in memory.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<TensorEntry> Take() { return std::move(entries_); }
  const std::string& error() const { return error_; }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_integer(int64_t) override {
    return Unexpected("a negative number");
  }
  bool number_float(double, const std::string&) override {
    return Unexpected("a number that is not an unsigned integer");
  }
  bool binary(binary_t&) override { return Unexpected("binary data"); }

  bool number_unsigned(uint64_t value) override {
    if (place_ != Place::kShape && place_ != Place::kOffsets) {
      return Unexpected("a number");
    }
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Fail("has a number over 2^63-1");
    }
    TensorEntry& entry = entries_.back();
    if (place_ == Place::kShape) {
      if (entry.shape.size() == kMaxSafetensorsRank) {
        return FailTensor(
            absl::StrCat("has a rank over ", kMaxSafetensorsRank));
      }
      entry.shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (offsets_ == 2) return FailTensor("has more than two data_offsets");
    (offsets_++ == 0 ? entry.begin : entry.end) = static_cast<int64_t>(value);
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::kMetadata) return true;
    if (place_ != Place::kDType) return Unexpected("a string");
    entries_.back().dtype = value;
    place_ = Place::kTensor;
    return true;
  }

  bool key(std::string& key) override {
    if (place_ == Place::kTop) return TopKey(key);
    if (place_ == Place::kMetadata) {
      return metadata_keys_.insert(key).second ||
             Fail(absl::StrCat("has the key ", Quote(key), " twice"));
    }
    int field = -1;
    if (key == "dtype") field = 0;
    if (key == "shape") field = 1;
    if (key == "data_offsets") field = 2;
    if (field < 0) {
      return FailTensor(absl::StrCat("has the unknown member ", Quote(key)));
    }
    if (seen_[field]) return FailTensor(absl::StrCat("has ", key, " twice"));
    seen_[field] = true;
    constexpr Place kPlaces[] = {Place::kDType, Place::kBeforeShape,
                                 Place::kBeforeOffsets};
    place_ = kPlaces[field];
    return true;
  }

  bool start_object(size_t) override {
    switch (place_) {
      case Place::kStart:
        place_ = Place::kTop;
        return true;
      case Place::kBeforeTensor:
        place_ = Place::kTensor;
        return true;
      case Place::kBeforeMetadata:
        place_ = Place::kMetadata;
        return true;
      default:
        return Unexpected("an object");
    }
  }

  bool end_object() override {
    if (place_ == Place::kTensor) {
      if (!seen_[0] || !seen_[1] || !seen_[2]) {
        return FailTensor("lacks dtype, shape or data_offsets");
      }
      if (offsets_ != 2) return FailTensor("has fewer than two data_offsets");
    }
    place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ == Place::kBeforeShape) {
      place_ = Place::kShape;
    } else if (place_ == Place::kBeforeOffsets) {
      place_ = Place::kOffsets;
    } else {
      return Unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(absl::StrCat("is not JSON near its byte ", position));
  }

 private:
  enum class Place {
    kStart,
    kTop,
    kBeforeTensor,
    kTensor,
    kDType,
    kBeforeShape,
    kShape,
    kBeforeOffsets,
    kOffsets,
    kBeforeMetadata,
    kMetadata,
    kEnd,
  };

  bool TopKey(const std::string& key) {
    if (!names_.insert(key).second) {
      return Fail(absl::StrCat("has the key ", Quote(key), " twice"));
    }
    if (key == "__metadata__") {
      place_ = Place::kBeforeMetadata;
      return true;
    }
    if (static_cast<int64_t>(entries_.size()) == kMaxSafetensorsTensors) {
      return Fail(
          absl::StrCat("has more than ", kMaxSafetensorsTensors, " tensors"));
    }
    entries_.emplace_back();
    entries_.back().name = key;
    seen_[0] = seen_[1] = seen_[2] = false;
    offsets_ = 0;
    place_ = Place::kBeforeTensor;
    return true;
  }

  bool Fail(std::string error) {
    error_ = std::move(error);
    return false;
  }
  bool FailTensor(absl::string_view what) {
    return Fail(absl::StrCat("entry ", Quote(entries_.back().name), " ", what));
  }
  bool Unexpected(absl::string_view what) {
    return Fail(absl::StrCat("has ", what, " where no value is allowed",
                             entries_.empty()
                                 ? ""
                                 : absl::StrCat(", at or after tensor ",
                                                Quote(entries_.back().name))));
  }

  Place place_ = Place::kStart;
  std::vector<TensorEntry> entries_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> metadata_keys_;
  bool seen_[3] = {false, false, false};  // dtype, shape, data_offsets
  int offsets_ = 0;
  std::string error_;
};

absl::Status CheckSize(const TensorEntry& entry) {
  const DTypeBits* dtype = std::find_if(
      std::begin(kDTypes), std::end(kDTypes),
      [&](const DTypeBits& row) { return entry.dtype == row.name; });
  if (dtype == std::end(kDTypes)) {
    return Bad(absl::StrCat("entry ", Quote(entry.name), " has the dtype ",
                            Quote(entry.dtype), ", which is unknown"));
  }
  uint64_t bits = dtype->bits;
  bool overflow = false;
  for (int64_t extent : entry.shape) {
    overflow = overflow || __builtin_mul_overflow(
                               bits, static_cast<uint64_t>(extent), &bits);
  }
  if (overflow || entry.begin > entry.end || bits % 8 != 0 ||
      bits / 8 != static_cast<uint64_t>(entry.end - entry.begin)) {
    return Bad(absl::StrCat("entry ", Quote(entry.name), " has the shape ",
                            ShapeText(entry.shape), " of ", entry.dtype,
                            ", which does not fill its data_offsets [",
                            entry.begin, ",", entry.end, "]"));
  }
  return absl::OkStatus();
}

// Every byte of the data section belongs to exactly one tensor.
absl::Status CheckCover(const std::vector<TensorEntry>& entries,
                        int64_t data_bytes) {
  std::vector<const TensorEntry*> order;
  order.reserve(entries.size());
  for (const TensorEntry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const TensorEntry* a, const TensorEntry* b) {
              return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
            });
  int64_t covered = 0;
  for (const TensorEntry* entry : order) {
    if (entry->begin != covered) {
      return Bad(absl::StrCat("entry ", Quote(entry->name), " begins at byte ",
                              entry->begin, " of the data; ", covered,
                              " is where the preceding tensors end"));
    }
    covered = entry->end;
  }
  if (covered != data_bytes) {
    return Bad(absl::StrCat("describes ", covered,
                            " bytes of data; the file has ", data_bytes,
                            covered > data_bytes ? kIncomplete : ""));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t TensorEntry::num_values() const {
  int64_t values = 1;
  for (int64_t extent : shape) values *= extent;
  return values;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

absl::StatusOr<int64_t> SafetensorsHeaderBytes(const char prefix[8],
                                               int64_t file_bytes) {
  uint64_t bytes = 0;
  for (int i = 7; i >= 0; --i) {
    bytes = bytes << 8 | static_cast<unsigned char>(prefix[i]);
  }
  if (bytes > static_cast<uint64_t>(kMaxSafetensorsHeaderBytes)) {
    return Bad(absl::StrCat("claims ", bytes, " bytes; at most ",
                            kMaxSafetensorsHeaderBytes, " are read"));
  }
  if (static_cast<int64_t>(bytes) > file_bytes - kSafetensorsPrefixBytes) {
    return Bad(absl::StrCat("claims ", bytes, " bytes; the file has ",
                            file_bytes, kIncomplete));
  }
  return static_cast<int64_t>(bytes);
}

absl::StatusOr<std::vector<TensorEntry>> ParseSafetensorsHeader(
    absl::string_view json, int64_t data_bytes) {
  // The JSON library would skip a byte order mark or blanks.
  if (json.empty() || json[0] != '{') return Bad("does not start with '{'");
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader)) {
    return Bad(reader.error());
  }
  std::vector<TensorEntry> entries = reader.Take();
  for (const TensorEntry& entry : entries) {
    const absl::Status size = CheckSize(entry);
    if (!size.ok()) return size;
  }
  const absl::Status cover = CheckCover(entries, data_bytes);
  if (!cover.ok()) return cover;
  std::sort(entries.begin(), entries.end(),
            [](const TensorEntry& a, const TensorEntry& b) {
              return a.name < b.name;
            });
  return entries;
}

}  // namespace encoderd
