#include "server/rpc/wire.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "engine/base/utf8.h"
#include "google/protobuf/io/coded_stream.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "server/pipeline/reasons.h"
#include "server/rpc/parse_cost.h"
#include "server/rpc/walk.h"

namespace encoderd {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::io::CodedInputStream;

absl::Status Malformed() {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "the bytes are not a valid request message of this method: "
                   "compare the caller's encoder.proto with the server's",
                   {reason::kMalformedMessage, {}, ""});
}

// A field within a message within ...: a place whose name is only built if an
// error needs it.
struct Place {
  const Place* outer = nullptr;  // the field that holds the message
  const FieldDescriptor* field = nullptr;
  absl::string_view message;  // that the field is in
  size_t at = 0;              // where the field's tag begins
  int64_t entry = -1;         // of a repeated field, where it is known
};

// The number of preceding entries of the field in its message.
int64_t EntryOf(const Place& place) {
  if (place.entry >= 0) return place.entry;
  int64_t entries = 0;
  WalkFields(place.message, [&](const WireField& field, auto* stream) {
    if (static_cast<size_t>(field.begin) >= place.at) return false;
    if (field.number() == place.field->number() && field.has_length()) {
      ++entries;
    }
    return SkipValue(stream, field);
  });
  return entries;
}

// "inputs[3].pair.second". *entry: 3, the entry of the outermost field, or -1
// if that is not repeated.
std::string NameOf(const Place& place, int64_t* entry) {
  std::string name;
  if (place.outer != nullptr) {
    name = absl::StrCat(NameOf(*place.outer, entry), ".");
  }
  absl::StrAppend(&name, std::string(place.field->name()));
  const int64_t index = place.field->is_repeated() ? EntryOf(place) : -1;
  if (index >= 0) absl::StrAppend(&name, "[", index, "]");
  if (place.outer == nullptr) *entry = index;
  return name;
}

absl::Status NotUtf8(const Place& place, int64_t offset) {
  int64_t entry = -1;
  const std::string name = NameOf(place, &entry);
  ErrorDetail detail{
      reason::kInvalidUtf8, {{"byte_offset", absl::StrCat(offset)}}, name};
  if (entry >= 0) detail.metadata["input_index"] = absl::StrCat(entry);
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat(name, " is not UTF-8 at byte ", offset),
                   detail);
}

// Reads a length and this many bytes, in place. False: bytes are missing.
bool ReadValue(absl::string_view message, CodedInputStream* stream,
               absl::string_view* value) {
  uint32_t length = 0;
  if (!stream->ReadVarint32(&length)) return false;
  const auto at = static_cast<size_t>(stream->CurrentPosition());
  if (length > message.size() - at) return false;
  *value = message.substr(at, length);
  return stream->Skip(static_cast<int>(length));
}

// Walks a message like the parser and stops at the first text that is not
// UTF-8. `outer` is the field that holds the message; null: it is the request.
// A message of a million fields takes tens of milliseconds: nothing is built
// for a valid field.
absl::Status CheckTexts(absl::string_view bytes,
                        const google::protobuf::Descriptor& type,
                        const Place* outer, int depth) {
  if (depth > kMaxDepth) return Malformed();
  absl::Status status;
  const bool whole =
      WalkFields(bytes, [&](const WireField& came, auto* stream) {
        const FieldDescriptor* field = type.FindFieldByNumber(came.number());
        if (field == nullptr || !came.has_length()) {
          return SkipValue(stream, came);
        }
        absl::string_view value;
        if (!ReadValue(bytes, stream, &value)) return false;
        const Place place{outer, field, bytes, static_cast<size_t>(came.begin)};
        if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
          status = CheckTexts(value, *field->message_type(), &place, depth + 1);
        } else if (field->type() == FieldDescriptor::TYPE_STRING) {
          const std::optional<int64_t> invalid = utf8::FindInvalid(value);
          if (invalid.has_value()) status = NotUtf8(place, *invalid);
        }
        return status.ok();
      });
  return whole || !status.ok() ? status : Malformed();
}

}  // namespace

std::string FindString(const grpc::ByteBuffer& bytes, int number,
                       size_t max_bytes) {
  grpc::ProtoBufferReader reader(const_cast<grpc::ByteBuffer*>(&bytes));
  if (!reader.status().ok()) return "";
  CodedInputStream stream(&reader);
  std::string found;
  int64_t fields = 0;
  WalkFields(&stream, [&](const WireField& field) {
    if (++fields > kMaxFields) return false;
    if (field.number() != number || !field.has_length()) {
      return SkipValue(&stream, field);
    }
    uint32_t length = 0;
    if (stream.ReadVarint32(&length) && length <= max_bytes &&
        stream.ReadString(&found, static_cast<int>(length))) {
      return true;
    }
    found.clear();
    return false;
  });
  return utf8::FindInvalid(found).has_value() ? "" : found;
}

absl::Status ParseMessage(const grpc::ByteBuffer& bytes,
                          google::protobuf::Message* message) {
  absl::Status status = CheckParseCost(bytes, *message->GetDescriptor());
  return status.ok() ? ParseChecked(bytes, message) : status;
}

absl::Status ParseChecked(const grpc::ByteBuffer& bytes,
                          google::protobuf::Message* message) {
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
  const absl::Status status = CheckTexts(bytes, type, nullptr, 0);
  return status.ok() ? Malformed() : status;
}

bool EmptyInvalidEntries(const grpc::ByteBuffer& bytes,
                         const google::protobuf::Descriptor& type, int number,
                         int64_t most, std::string* mended,
                         std::vector<InputFault>* bad) {
  const FieldDescriptor* field = type.FindFieldByNumber(number);
  grpc::Slice slice;
  if (field == nullptr || !bytes.DumpToSingleSlice(&slice).ok()) return false;
  const absl::string_view all(reinterpret_cast<const char*>(slice.begin()),
                              slice.size());
  mended->reserve(all.size());
  int64_t index = 0;
  const bool whole = WalkFields(all, [&](const WireField& came, auto* stream) {
    const auto begin = static_cast<size_t>(came.begin);
    const auto at = static_cast<size_t>(stream->CurrentPosition());
    const bool wanted = came.number() == number && came.has_length();
    absl::string_view value;
    if (!(wanted ? ReadValue(all, stream, &value) : SkipValue(stream, came))) {
      return false;
    }
    absl::Status status;
    if (wanted) {
      const Place place{nullptr, field, all, begin, index};
      status = CheckTexts(value, *field->message_type(), &place, 1);
    }
    const auto end = static_cast<size_t>(stream->CurrentPosition());
    if (status.ok()) {
      mended->append(all.data() + begin, end - begin);
    } else if (GetErrorDetail(status)->reason != reason::kInvalidUtf8 ||
               static_cast<int64_t>(bad->size()) == most) {
      return false;
    } else {
      mended->append(all.data() + begin, at - begin);
      mended->push_back('\0');  // a length of none
      bad->push_back({index, status});
    }
    if (wanted) ++index;
    return true;
  });
  return whole && !bad->empty();
}

absl::Status CheckAnswerSize(int64_t bytes, int64_t max_bytes,
                             absl::string_view field) {
  if (bytes <= max_bytes) return absl::OkStatus();
  return AnswerTooLargeError(bytes, max_bytes, field);
}

grpc::ByteBuffer SerializeMessage(const google::protobuf::Message& message) {
  const size_t size = message.ByteSizeLong();
  grpc::Slice slice(size);
  // A slice just made has no other owner.
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return grpc::ByteBuffer(&slice, 1);
}

absl::Status SerializeAnswer(const google::protobuf::Message& answer,
                             int64_t max_bytes, absl::string_view field,
                             grpc::ByteBuffer* bytes) {
  absl::Status fits = CheckAnswerSize(
      static_cast<int64_t>(answer.ByteSizeLong()), max_bytes, field);
  if (fits.ok()) SerializeMessage(answer).Swap(bytes);
  return fits;
}

}  // namespace encoderd
