#include "server/rpc/parse_cost.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "server/rpc/walk.h"

namespace encoderd {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int64_t kMaxNumber = std::numeric_limits<uint32_t>::max();

WireFormatLite::WireType WireTypeOf(const FieldDescriptor& field) {
  return WireFormatLite::WireTypeForFieldType(
      static_cast<WireFormatLite::FieldType>(field.type()));
}

// Whether the parser accepts the value of `field`.
bool IsRead(const FieldDescriptor& field, const WireField& came) {
  return came.type() == WireTypeOf(field) ||
         (field.is_packable() && came.has_length());
}

// Whether the parser keeps `value` as it is in a field of this type.
bool Holds(const FieldDescriptor& field, uint64_t value) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return value <= std::numeric_limits<uint32_t>::max();
    case FieldDescriptor::CPPTYPE_ENUM:
    case FieldDescriptor::CPPTYPE_INT32:
      return static_cast<int64_t>(value) == static_cast<int32_t>(value);
    default:
      return true;
  }
}

// Reads a length and this many bytes, and calls take(value) for each varint in
// them. False: bytes are missing.
template <typename Take>
bool WalkVarints(CodedInputStream* stream, Take take) {
  uint32_t left = 0;
  if (!stream->ReadVarint32(&left)) return false;
  uint64_t value = 0;
  int shift = 0;
  while (left > 0) {
    const void* data = nullptr;
    int size = 0;
    if (!stream->GetDirectBufferPointer(&data, &size)) return false;
    const uint32_t here = std::min(left, static_cast<uint32_t>(size));
    const auto* const bytes = static_cast<const uint8_t*>(data);
    for (uint32_t i = 0; i < here; ++i) {
      value |= uint64_t{bytes[i] & 0x7fu} << shift;
      if (bytes[i] < 0x80) {
        take(value);
        value = 0;
        shift = 0;
      } else {
        shift = std::min(shift + 7, 63);
      }
    }
    stream->Skip(static_cast<int>(here));
    left -= here;
  }
  return true;
}

class Counter {
 public:
  Counter(CodedInputStream* stream, int64_t max_fields)
      : stream_(*stream), max_fields_(max_fields) {}

  // One message, to its end or the stream's limit. False: nothing more to
  // count.
  bool Count(const Descriptor& type, int depth) {
    uint64_t seen = 0;  // singular fields, by number
    return WalkFields(&stream_, [&](const WireField& came) {
      if (++cost_.fields > max_fields_) return false;
      const FieldDescriptor* field = type.FindFieldByNumber(came.number());
      bool read = field != nullptr && IsRead(*field, came);
      if (read && !field->is_repeated()) {
        const uint64_t bit = uint64_t{1} << (came.number() % 64);
        read = (seen & bit) == 0;
        seen |= bit;
      }
      if (!(read ? CountField(*field, came, depth)
                 : SkipValue(&stream_, came))) {
        return false;
      }
      if (!read) cost_.spare_bytes += stream_.CurrentPosition() - came.begin;
      return cost_.spare_bytes <= kMaxSpareBytes;
    });
  }

  const ParseCost& cost() const { return cost_; }

 private:
  bool CountField(const FieldDescriptor& field, const WireField& came,
                  int depth) {
    if (depth == 0 && field.is_repeated()) ++cost_.entries;
    if (depth < kMaxDepth && field.type() == FieldDescriptor::TYPE_MESSAGE) {
      uint32_t length = 0;
      if (!stream_.ReadVarint32(&length)) return false;
      const auto outer = stream_.PushLimit(static_cast<int>(length));
      if (!Count(*field.message_type(), depth + 1)) return false;
      stream_.PopLimit(outer);
      return true;
    }
    if (WireTypeOf(field) != WireFormatLite::WIRETYPE_VARINT) {
      return SkipValue(&stream_, came);
    }
    if (came.has_length()) {
      return WalkVarints(&stream_,
                         [&](uint64_t value) { CountNumber(field, value); });
    }
    uint64_t value = 0;
    if (!stream_.ReadVarint64(&value)) return false;
    CountNumber(field, value);
    return true;
  }

  void CountNumber(const FieldDescriptor& field, uint64_t value) {
    if (field.is_repeated()) ++cost_.list_values;
    if (!Holds(field, value) && !cost_.too_large.has_value())
      cost_.too_large = {std::string(field.name()), value};
  }

  CodedInputStream& stream_;
  const int64_t max_fields_;
  ParseCost cost_;
};

}  // namespace

ParseCost CountParseCost(const grpc::ByteBuffer& bytes, const Descriptor& type,
                         int64_t max_fields) {
  // The reader only reads; its constructor asks for a pointer to non-const.
  grpc::ProtoBufferReader reader(const_cast<grpc::ByteBuffer*>(&bytes));
  if (!reader.status().ok()) return {};
  CodedInputStream stream(&reader);
  Counter counter(&stream, max_fields);
  counter.Count(type, 0);
  return counter.cost();
}

absl::Status CheckParseCost(const grpc::ByteBuffer& bytes,
                            const Descriptor& type, const ParseLimits& limits,
                            ParseCost* cost) {
  const ParseCost counted = CountParseCost(bytes, type, limits.max_fields);
  if (cost != nullptr) *cost = counted;
  if (counted.spare_bytes > kMaxSpareBytes) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat("the message has more than ", kMaxSpareBytes,
                     " bytes of unknown fields, or of fields sent more than "
                     "once"),
        {"MALFORMED_MESSAGE", {{"limit", absl::StrCat(kMaxSpareBytes)}}, ""});
  }
  if (counted.fields > limits.max_fields) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat("the message has more than ", limits.max_fields,
                     " fields, the limit per request; send lists packed"),
        {"REQUEST_TOO_LARGE",
         {{"limit", absl::StrCat(limits.max_fields)}},
         ""});
  }
  if (counted.list_values > limits.max_list_values) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat("ids, segment_ids and position_ids have ",
                     counted.list_values,
                     " values in all; the limit per request is ",
                     limits.max_list_values, ": send fewer inputs per request"),
        {"REQUEST_TOO_LARGE",
         {{"list_values", absl::StrCat(counted.list_values)},
          {"limit", absl::StrCat(limits.max_list_values)}},
         "inputs"});
  }
  if (!counted.too_large.has_value()) return absl::OkStatus();
  const auto& [field, value] = *counted.too_large;
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat(field, " is ", value, "; at most ", kMaxNumber,
                   " fits into 32 bits"),
      {"INVALID_OPTION",
       {{"value", absl::StrCat(value)}, {"limit", absl::StrCat(kMaxNumber)}},
       field});
}

}  // namespace encoderd
