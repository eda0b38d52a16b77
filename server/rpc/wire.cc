#include "server/rpc/wire.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/error.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/stubs/common.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "server/rpc/spare_bytes.h"

namespace encoderd {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int kMaxDepth = 16;  // messages of the contract nest 4 deep

// First byte of the first malformed sequence, or -1. Shortest forms only, no
// surrogates, nothing past U+10FFFF.
int64_t FirstInvalidUtf8(absl::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto byte = [&](size_t k) {
      return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0;
    };
    const unsigned char lead = byte(0);
    const auto continues = [&](size_t k, int low = 0x80, int high = 0xBF) {
      return byte(k) >= low && byte(k) <= high;
    };
    size_t length = 0;
    if (lead < 0x80) {
      length = 1;
    } else if (lead >= 0xC2 && lead <= 0xDF) {
      if (continues(1)) length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      const int low = lead == 0xE0 ? 0xA0 : 0x80;
      const int high = lead == 0xED ? 0x9F : 0xBF;
      if (continues(1, low, high) && continues(2)) length = 3;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      const int low = lead == 0xF0 ? 0x90 : 0x80;
      const int high = lead == 0xF4 ? 0x8F : 0xBF;
      if (continues(1, low, high) && continues(2) && continues(3)) length = 4;
    }
    if (length == 0) return static_cast<int64_t>(i);
    i += length;
  }
  return -1;
}

absl::Status Malformed() {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "the bytes sent are not a message of this method",
                   {"MALFORMED_MESSAGE", {}, ""});
}

// Walks a message as the parser does and stops at the first text that is not
// UTF-8. `input_index` is that of the entry of `inputs` it is in, or -1.
absl::Status Walk(absl::string_view bytes,
                  const google::protobuf::Descriptor& type,
                  const std::string& path, int64_t input_index, int depth) {
  if (depth > kMaxDepth) return Malformed();
  CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                          static_cast<int>(bytes.size()));
  std::map<int, int64_t> seen;  // entries of each repeated field so far
  while (const uint32_t tag = stream.ReadTag()) {
    const int number = WireFormatLite::GetTagFieldNumber(tag);
    const FieldDescriptor* field = type.FindFieldByNumber(number);
    if (field == nullptr || WireFormatLite::GetTagWireType(tag) !=
                                WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&stream, tag)) return Malformed();
      continue;
    }
    uint32_t length = 0;
    if (!stream.ReadVarint32(&length)) return Malformed();
    const size_t at = static_cast<size_t>(stream.CurrentPosition());
    if (length > bytes.size() - at) return Malformed();
    const absl::string_view value = bytes.substr(at, length);
    stream.Skip(static_cast<int>(length));

    std::string name =
        absl::StrCat(path, path.empty() ? "" : ".", std::string(field->name()));
    int64_t index = input_index;
    if (field->is_repeated()) {
      const int64_t entry = seen[number]++;
      absl::StrAppend(&name, "[", entry, "]");
      if (depth == 0) index = entry;
    }
    if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
      const absl::Status status =
          Walk(value, *field->message_type(), name, index, depth + 1);
      if (!status.ok()) return status;
    } else if (field->type() == FieldDescriptor::TYPE_STRING) {
      const int64_t offset = FirstInvalidUtf8(value);
      if (offset < 0) continue;
      ErrorDetail detail{
          "INVALID_UTF8", {{"byte_offset", absl::StrCat(offset)}}, name};
      if (index >= 0) detail.metadata["input_index"] = absl::StrCat(index);
      return MakeError(absl::StatusCode::kInvalidArgument,
                       absl::StrCat(name, " is not UTF-8 at byte ", offset),
                       detail);
    }
  }
  return stream.ConsumedEntireMessage() ? absl::OkStatus() : Malformed();
}

}  // namespace

int64_t CountEntries(const grpc::ByteBuffer& bytes, int number) {
  // The reader only reads; its constructor asks for a pointer to non-const.
  grpc::ProtoBufferReader reader(const_cast<grpc::ByteBuffer*>(&bytes));
  if (!reader.status().ok()) return 0;
  CodedInputStream stream(&reader);
  int64_t count = 0;
  while (const uint32_t tag = stream.ReadTag()) {
    if (WireFormatLite::GetTagFieldNumber(tag) == number) ++count;
    if (!WireFormatLite::SkipField(&stream, tag)) break;
  }
  return count;
}

std::string FindString(const grpc::ByteBuffer& bytes, int number,
                       size_t max_bytes) {
  grpc::ProtoBufferReader reader(const_cast<grpc::ByteBuffer*>(&bytes));
  if (!reader.status().ok()) return "";
  CodedInputStream stream(&reader);
  std::string found;
  while (const uint32_t tag = stream.ReadTag()) {
    if (WireFormatLite::GetTagFieldNumber(tag) != number ||
        WireFormatLite::GetTagWireType(tag) !=
            WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&stream, tag)) break;
      continue;
    }
    uint32_t length = 0;
    if (!stream.ReadVarint32(&length) || length > max_bytes ||
        !stream.ReadString(&found, static_cast<int>(length))) {
      return "";
    }
  }
  return FirstInvalidUtf8(found) < 0 ? found : "";
}

absl::Status ParseMessage(const grpc::ByteBuffer& bytes,
                          google::protobuf::Message* message) {
  absl::Status spare = CheckSpareBytes(bytes, *message->GetDescriptor());
  if (!spare.ok()) return spare;
  {
    grpc::ProtoBufferReader reader(const_cast<grpc::ByteBuffer*>(&bytes));
    if (reader.status().ok() && message->ParseFromZeroCopyStream(&reader)) {
      return absl::OkStatus();
    }
  }
  grpc::Slice slice;
  if (!bytes.DumpToSingleSlice(&slice).ok()) return Malformed();
  return ExplainParseFailure(
      absl::string_view(reinterpret_cast<const char*>(slice.begin()),
                        slice.size()),
      *message->GetDescriptor());
}

absl::Status ExplainParseFailure(absl::string_view bytes,
                                 const google::protobuf::Descriptor& type) {
  const absl::Status status = Walk(bytes, type, "", -1, 0);
  return status.ok() ? Malformed() : status;
}

bool EmptyInvalidEntries(const grpc::ByteBuffer& bytes,
                         const google::protobuf::Descriptor& type, int number,
                         std::string* mended, std::vector<InputFault>* bad) {
  const FieldDescriptor* field = type.FindFieldByNumber(number);
  grpc::Slice slice;
  if (field == nullptr || !bytes.DumpToSingleSlice(&slice).ok()) return false;
  const absl::string_view all(reinterpret_cast<const char*>(slice.begin()),
                              slice.size());
  const uint32_t wanted = WireFormatLite::MakeTag(
      number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  CodedInputStream stream(slice.begin(), static_cast<int>(slice.size()));
  mended->reserve(all.size());
  int64_t index = 0;
  size_t begin = 0;  // of the field at hand
  while (const uint32_t tag = stream.ReadTag()) {
    const auto value = static_cast<size_t>(stream.CurrentPosition());
    if (!WireFormatLite::SkipField(&stream, tag)) return false;
    const auto end = static_cast<size_t>(stream.CurrentPosition());
    absl::Status status;
    if (tag == wanted) {
      CodedInputStream head(slice.begin() + value,
                            static_cast<int>(end - value));
      uint32_t length = 0;
      if (!head.ReadVarint32(&length)) return false;
      status = Walk(all.substr(end - length, length), *field->message_type(),
                    absl::StrCat(std::string(field->name()), "[", index, "]"),
                    index, 1);
    }
    if (status.ok()) {
      mended->append(all.data() + begin, end - begin);
    } else if (GetErrorDetail(status)->reason != "INVALID_UTF8") {
      return false;
    } else {
      mended->append(all.data() + begin, value - begin);
      mended->push_back('\0');  // a length of none
      bad->push_back({index, status});
    }
    if (tag == wanted) ++index;
    begin = end;
  }
  return stream.ConsumedEntireMessage() && !bad->empty();
}

void QuietProtobuf() {
#if GOOGLE_PROTOBUF_VERSION < 4000000
  google::protobuf::SetLogHandler(nullptr);
#endif
}

grpc::ByteBuffer SerializeMessage(const google::protobuf::Message& message) {
  const size_t size = message.ByteSizeLong();
  grpc::Slice slice(size);
  // A slice just made has no other owner.
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace encoderd
