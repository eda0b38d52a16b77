// The bytes of an answer whose entries have vectors. A message would hold a
// copy of each; here each is copied once, to where gRPC sends it from.
//
// What parses the bytes gets the message that has the vectors, too; they are as
// many, but the fields of an entry are in another order. Not thread-safe.
#ifndef ENCODERD_SERVER_RPC_VECTOR_ANSWER_H_
#define ENCODERD_SERVER_RPC_VECTOR_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"

namespace encoderd {

class VectorAnswer {
 public:
  // Where an entry has its vector.
  struct Place {
    int field = 0;   // of the entry
    int inner = -1;  // of the message in `field`: a list of floats; -1: `field`
                     // is bytes, little-endian
  };

  // entries: the number of the repeated field of the answer.
  VectorAnswer(int entries, size_t count) : entries_(entries) {
    parts_.reserve(count);
  }

  // The next entry: `head` with `values` (none: it has no vector). Both must
  // live until Serialize, and `head` stay as it is.
  void Add(const google::protobuf::Message& head, Place place,
           absl::Span<const float> values);

  // REQUEST_TOO_LARGE as in CheckAnswerSize (wire.h), of the entries so far:
  // whoever builds many heads stops there.
  absl::Status CheckSize(int64_t max_bytes, absl::string_view field) const;

  // `rest`: the answer without its entries. REQUEST_TOO_LARGE as in
  // CheckAnswerSize.
  absl::Status Serialize(const google::protobuf::Message& rest,
                         int64_t max_bytes, absl::string_view field,
                         grpc::ByteBuffer* bytes) const;

 private:
  struct Part {
    const google::protobuf::Message* head;
    Place place;
    absl::Span<const float> values;
    size_t bytes;  // of the entry, without its tag and length
  };

  static uint8_t* Write(const Part& part, uint8_t* to);

  const int entries_;
  size_t bytes_ = 0;  // of all entries
  std::vector<Part> parts_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_VECTOR_ANSWER_H_
