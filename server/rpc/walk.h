// The only walker over Protobuf's wire format: code that counts, explains,
// finds or repairs fields without the parser uses it. Thread-safe: plain
// functions over the caller's stream.
#ifndef ENCODERD_SERVER_RPC_WALK_H_
#define ENCODERD_SERVER_RPC_WALK_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace encoderd {

inline constexpr int kMaxDepth = 16;  // messages of the contract nest 4 deep

// A field whose tag was read, but not its value.
struct WireField {
  using Type = google::protobuf::internal::WireFormatLite::WireType;

  uint32_t tag = 0;
  int begin = 0;  // where the tag begins

  int number() const { return static_cast<int>(tag >> 3); }
  Type type() const { return static_cast<Type>(tag & 7); }
  // A text, bytes, a message, or a packed list.
  bool has_length() const {
    return type() == google::protobuf::internal::WireFormatLite::
                         WIRETYPE_LENGTH_DELIMITED;
  }
};

inline bool SkipValue(google::protobuf::io::CodedInputStream* stream,
                      const WireField& field) {
  return google::protobuf::internal::WireFormatLite::SkipField(stream,
                                                               field.tag);
}

// The fields of one message, to the stream's end or limit. visit(field) reads
// or skips the value; it returns false to end the walk. False: it did, or the
// bytes are invalid.
template <typename Visit>
bool WalkFields(google::protobuf::io::CodedInputStream* stream, Visit visit) {
  while (true) {
    WireField field;
    field.begin = stream->CurrentPosition();
    field.tag = stream->ReadTag();
    if (field.tag == 0) return stream->ConsumedEntireMessage();
    if (!visit(field)) return false;
  }
}

// The same over bytes in one piece.
template <typename Visit>
bool WalkFields(absl::string_view bytes, Visit visit) {
  google::protobuf::io::CodedInputStream stream(
      reinterpret_cast<const uint8_t*>(bytes.data()),
      static_cast<int>(bytes.size()));
  return WalkFields(
      &stream, [&](const WireField& field) { return visit(field, &stream); });
}

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_WALK_H_
