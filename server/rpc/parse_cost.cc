#include "server/rpc/parse_cost.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "server/api/options.h"
#include "server/pipeline/reasons.h"
#include "server/rpc/walk.h"

namespace encoderd {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr uint64_t kMaxNumber = std::numeric_limits<uint32_t>::max();

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
      return value <= kMaxNumber;
    case FieldDescriptor::CPPTYPE_ENUM:  // negative ones travel in 64 bits
      return value <= kMaxNumber ||
             static_cast<int64_t>(value) == static_cast<int32_t>(value);
    default:
      return true;
  }
}

// Reads the varints of a list, piece by piece.
class Varints {
 public:
  int64_t count() const { return count_; }
  uint64_t largest() const { return largest_; }  // 0 if all fit into 32 bits

  void Read(const uint8_t* bytes, size_t size) {
    if (MayBeLarge(bytes, size)) {
      for (size_t i = 0; i < size; ++i) ReadOne(bytes[i]);
      return;
    }
    // Compilers make both loops wide: nearly all lists end here.
    count_ += std::count_if(bytes, bytes + size, Ends);
    size_t rest = size;  // where the last varint begins, which has no end yet
    while (rest > 0 && !Ends(bytes[rest - 1])) --rest;
    if (rest > 0) value_ = shift_ = 0;
    for (; rest < size; ++rest) ReadOne(bytes[rest]);
  }

 private:
  static bool Ends(uint8_t byte) { return byte < 0x80; }

  // Five bytes hold more than 32 bits, four do not.
  bool MayBeLarge(const uint8_t* bytes, size_t size) const {
    size_t go_on = static_cast<size_t>(shift_) / 7;
    for (size_t i = 0; i < size && !Ends(bytes[i]); ++i)
      if (++go_on == 4) return true;
    uint8_t all = 0;
    for (size_t i = 3; i < size; ++i)
      all |= bytes[i - 3] & bytes[i - 2] & bytes[i - 1] & bytes[i];
    return !Ends(all);
  }

  void ReadOne(uint8_t byte) {
    value_ |= uint64_t{byte & 0x7fu} << shift_;
    shift_ = std::min(shift_ + 7, 63);
    if (!Ends(byte)) return;
    ++count_;
    if (value_ > kMaxNumber) largest_ = std::max(largest_, value_);
    value_ = shift_ = 0;
  }

  int64_t count_ = 0;
  uint64_t largest_ = 0;
  uint64_t value_ = 0;  // of the varint that has no end yet
  int shift_ = 0;
};

// Reads a length and this many bytes. False: bytes are missing.
bool ReadVarints(CodedInputStream* stream, Varints* varints) {
  uint32_t left = 0;
  if (!stream->ReadVarint32(&left)) return false;
  while (left > 0) {
    const void* data = nullptr;
    int size = 0;
    if (!stream->GetDirectBufferPointer(&data, &size)) return false;
    const uint32_t here = std::min(left, static_cast<uint32_t>(size));
    varints->Read(static_cast<const uint8_t*>(data), here);
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
      const bool read = field != nullptr && IsRead(*field, came);
      bool first = read;
      if (read && !field->is_repeated()) {
        const uint64_t bit = uint64_t{1} << (came.number() % 64);
        first = (seen & bit) == 0;
        seen |= bit;
      }
      const int64_t spare = cost_.spare_bytes;
      // Of a field that comes again, the last value counts.
      if (!(read ? CountField(*field, came, depth)
                 : SkipValue(&stream_, came))) {
        return false;
      }
      if (!first)
        cost_.spare_bytes = spare + stream_.CurrentPosition() - came.begin;
      return cost_.spare_bytes <= kMaxSpareBytes;
    });
  }

  const ParseCost& cost() const { return cost_; }

 private:
  bool CountField(const FieldDescriptor& field, const WireField& came,
                  int depth) {
    if (depth == 0 && field.is_repeated()) ++cost_.entries;
    path_[depth] = &field;
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
      Varints varints;
      const bool whole = ReadVarints(&stream_, &varints);
      cost_.list_values += varints.count();
      if (varints.largest() > 0) NoteLarge(depth, varints.largest());
      return whole;
    }
    if (field.is_repeated()) ++cost_.list_values;
    uint64_t value = 0;
    if (!stream_.ReadVarint64(&value)) return false;
    if (value > kMaxNumber) NoteLarge(depth, value);
    return true;
  }

  // Of the field path_[depth].
  void NoteLarge(int depth, uint64_t value) {
    if (cost_.too_large.has_value() || Holds(*path_[depth], value)) return;
    std::string name;
    for (int i = 0; i <= depth; ++i) {
      absl::StrAppend(&name, i == 0 ? "" : ".", std::string(path_[i]->name()));
      if (i == 0 && path_[i]->is_repeated())
        absl::StrAppend(&name, "[", cost_.entries - 1, "]");
    }
    cost_.too_large = {name, value};
  }

  CodedInputStream& stream_;
  const int64_t max_fields_;
  ParseCost cost_;
  std::array<const FieldDescriptor*, kMaxDepth + 1> path_ = {};
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
        {reason::kMalformedMessage,
         {{"limit", absl::StrCat(kMaxSpareBytes)}},
         ""});
  }
  if (counted.fields > limits.max_fields) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat("the message has more than ", limits.max_fields,
                     " fields, the limit per request; send lists packed"),
        {reason::kRequestTooLarge,
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
        {reason::kRequestTooLarge,
         {{"list_values", absl::StrCat(counted.list_values)},
          {"limit", absl::StrCat(limits.max_list_values)}},
         "inputs"});
  }
  if (!counted.too_large.has_value()) return absl::OkStatus();
  const auto& [field, value] = *counted.too_large;
  return BadOption(field,
                   absl::StrCat("is ", value, "; at most ", kMaxNumber,
                                " fits into 32 bits"),
                   value, kMaxNumber);
}

}  // namespace encoderd
