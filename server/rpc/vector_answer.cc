#include "server/rpc/vector_answer.h"

#include "engine/base/quantize.h"
#include "google/protobuf/io/coded_stream.h"
#include "grpcpp/support/slice.h"
#include "server/rpc/wire.h"

namespace encoderd {
namespace {

using google::protobuf::io::CodedOutputStream;

// Of a field that has a length.
uint32_t Tag(int field) { return static_cast<uint32_t>(field) << 3 | 2; }

// Of such a field, with its tag and length.
size_t FieldBytes(int field, size_t bytes) {
  return CodedOutputStream::VarintSize32(Tag(field)) +
         CodedOutputStream::VarintSize64(bytes) + bytes;
}

uint8_t* WriteTag(int field, size_t bytes, uint8_t* to) {
  to = CodedOutputStream::WriteTagToArray(Tag(field), to);
  return CodedOutputStream::WriteVarint64ToArray(bytes, to);
}

size_t FloatBytes(absl::Span<const float> values) {
  return static_cast<size_t>(
      FormatBytes(VectorFormat::kFloat32, static_cast<int64_t>(values.size())));
}

}  // namespace

void VectorAnswer::Add(const google::protobuf::Message& head, Place place,
                       absl::Span<const float> values) {
  size_t bytes = head.ByteSizeLong();
  if (!values.empty()) {
    const size_t floats = FloatBytes(values);
    bytes +=
        FieldBytes(place.field,
                   place.inner < 0 ? floats : FieldBytes(place.inner, floats));
  }
  parts_.push_back({&head, place, values, bytes});
  bytes_ += FieldBytes(entries_, bytes);
}

uint8_t* VectorAnswer::Write(const Part& part, uint8_t* to) {
  if (!part.values.empty()) {
    const size_t floats = FloatBytes(part.values);
    if (part.place.inner >= 0) {
      to = WriteTag(part.place.field, FieldBytes(part.place.inner, floats), to);
      to = WriteTag(part.place.inner, floats, to);
    } else {
      to = WriteTag(part.place.field, floats, to);
    }
    WriteVector(VectorFormat::kFloat32, {}, part.values, to);
    to += floats;
  }
  return part.head->SerializeWithCachedSizesToArray(to);
}

absl::Status VectorAnswer::CheckSize(int64_t max_bytes,
                                     absl::string_view field) const {
  return CheckAnswerSize(static_cast<int64_t>(bytes_), max_bytes, field);
}

absl::Status VectorAnswer::Serialize(const google::protobuf::Message& rest,
                                     int64_t max_bytes, absl::string_view field,
                                     grpc::ByteBuffer* bytes) const {
  const size_t size = rest.ByteSizeLong() + bytes_;
  absl::Status fits =
      CheckAnswerSize(static_cast<int64_t>(size), max_bytes, field);
  if (!fits.ok()) return fits;
  grpc::Slice slice(size);
  // A slice just made has no other owner.
  auto* to = const_cast<uint8_t*>(slice.begin());
  to = rest.SerializeWithCachedSizesToArray(to);
  for (const Part& part : parts_) {
    to = WriteTag(entries_, part.bytes, to);
    to = Write(part, to);
  }
  grpc::ByteBuffer(&slice, 1).Swap(bytes);
  return absl::OkStatus();
}

}  // namespace encoderd
