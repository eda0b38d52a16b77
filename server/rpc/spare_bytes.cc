#include "server/rpc/spare_bytes.h"

#include "absl/strings/str_cat.h"
#include "engine/error.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/proto_buffer_reader.h"

namespace encoderd {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int kMaxDepth = 16;  // messages of the contract nest 4 deep

// Whether the parser takes a field with this tag as `field`.
bool IsRead(const FieldDescriptor& field, uint32_t tag) {
  const auto type = static_cast<WireFormatLite::FieldType>(field.type());
  const WireFormatLite::WireType wire = WireFormatLite::GetTagWireType(tag);
  return wire == WireFormatLite::WireTypeForFieldType(type) ||
         (field.is_packable() &&
          wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

// One message, to its end or the stream's limit. False: there is nothing more
// to count.
bool Count(CodedInputStream* stream, const Descriptor& type, int depth,
           int64_t* spare) {
  uint64_t seen = 0;  // singular fields, by number
  while (true) {
    const int begin = stream->CurrentPosition();
    const uint32_t tag = stream->ReadTag();
    if (tag == 0) return stream->ConsumedEntireMessage();
    const int number = WireFormatLite::GetTagFieldNumber(tag);
    const FieldDescriptor* field = type.FindFieldByNumber(number);
    bool read = field != nullptr && IsRead(*field, tag);
    if (read && !field->is_repeated()) {
      const uint64_t bit = uint64_t{1} << (number % 64);
      read = (seen & bit) == 0;
      seen |= bit;
    }
    if (read && depth < kMaxDepth &&
        field->type() == FieldDescriptor::TYPE_MESSAGE) {
      uint32_t length = 0;
      if (!stream->ReadVarint32(&length)) return false;
      const auto outer = stream->PushLimit(static_cast<int>(length));
      if (!Count(stream, *field->message_type(), depth + 1, spare)) {
        return false;
      }
      stream->PopLimit(outer);
      continue;
    }
    if (!WireFormatLite::SkipField(stream, tag)) return false;
    if (!read) *spare += stream->CurrentPosition() - begin;
    if (*spare > kMaxSpareBytes) return false;
  }
}

}  // namespace

int64_t CountSpareBytes(const grpc::ByteBuffer& bytes, const Descriptor& type) {
  // The reader only reads; its constructor asks for a pointer to non-const.
  grpc::ProtoBufferReader reader(const_cast<grpc::ByteBuffer*>(&bytes));
  if (!reader.status().ok()) return 0;
  CodedInputStream stream(&reader);
  int64_t spare = 0;
  Count(&stream, type, 0, &spare);
  return spare;
}

absl::Status CheckSpareBytes(const grpc::ByteBuffer& bytes,
                             const Descriptor& type) {
  if (CountSpareBytes(bytes, type) <= kMaxSpareBytes) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("the message has more than ", kMaxSpareBytes,
                   " bytes of fields that this method does not have, or has "
                   "only once"),
      {"MALFORMED_MESSAGE", {{"limit", absl::StrCat(kMaxSpareBytes)}}, ""});
}

}  // namespace encoderd
