#include "server/rpc/vector_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "encoderd/v1/encoder.pb.h"
#include "engine/base/error.h"
#include "server/rpc/wire.h"

namespace encoderd {
namespace {

constexpr VectorAnswer::Place kFloats{v1::Embedding::kFloatsFieldNumber,
                                      v1::FloatVector::kValuesFieldNumber};
constexpr VectorAnswer::Place kPacked{v1::Embedding::kPackedFieldNumber};
constexpr int64_t kNoLimit = 1 << 30;

std::string Packed(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<char>(bits >> shift));
    }
  }
  return bytes;
}

v1::EmbedResponse Parsed(const grpc::ByteBuffer& bytes) {
  v1::EmbedResponse message;
  EXPECT_TRUE(ParseMessage(bytes, &message).ok());
  // As many bytes as Protobuf would write.
  EXPECT_EQ(bytes.Length(), message.ByteSizeLong());
  return message;
}

// Lengths on both sides of where a varint grows, heads with and without fields.
TEST(VectorAnswerTest, IsTheMessageThatHoldsTheVectors) {
  std::mt19937 random(5);
  for (const VectorAnswer::Place place : {kFloats, kPacked}) {
    v1::EmbedResponse rest;
    rest.set_model("m");
    rest.set_request_id("id");
    rest.mutable_usage()->set_tokens(1234);
    v1::EmbedResponse expected = rest;
    std::vector<v1::Embedding> heads;
    std::vector<std::vector<float>> vectors;
    for (const int size :
         {0, 1, 7, 29, 30, 31, 32, 33, 384, 4090, 4096, 600000}) {
      v1::Embedding head;
      head.set_token_count(random() % 3 == 0 ? 0 : random() % 1000);
      head.set_truncated(random() % 2 == 0);
      head.set_windows(random() % 3);
      if (size == 0) head.mutable_error()->set_message("at fault");
      heads.push_back(head);
      std::vector<float>& values = vectors.emplace_back(size);
      for (float& value : values) {
        value = static_cast<float>(random()) - 2e9f;
      }
      if (size == 0) {
      } else if (place.inner < 0) {
        head.set_packed(Packed(values));
      } else {
        head.mutable_floats()->mutable_values()->Add(values.begin(),
                                                     values.end());
      }
      *expected.add_embeddings() = head;
    }
    VectorAnswer answer(v1::EmbedResponse::kEmbeddingsFieldNumber,
                        heads.size());
    for (size_t i = 0; i < heads.size(); ++i) {
      answer.Add(heads[i], place, vectors[i]);
    }
    grpc::ByteBuffer bytes;
    ASSERT_TRUE(answer.Serialize(rest, kNoLimit, "inputs", &bytes).ok());
    EXPECT_EQ(Parsed(bytes).SerializeAsString(), expected.SerializeAsString());
  }
}

TEST(VectorAnswerTest, AHeadMayHaveItsOwnBytesInsteadOfAVector) {
  v1::Embedding head;
  head.set_packed("\x01\x02");
  head.set_scale(0.5);
  VectorAnswer answer(v1::EmbedResponse::kEmbeddingsFieldNumber, 1);
  answer.Add(head, kPacked, {});
  grpc::ByteBuffer bytes;
  ASSERT_TRUE(
      answer.Serialize(v1::EmbedResponse(), kNoLimit, "inputs", &bytes).ok());
  EXPECT_EQ(Parsed(bytes).embeddings(0).SerializeAsString(),
            head.SerializeAsString());
}

TEST(VectorAnswerTest, WithoutEntriesItIsTheRest) {
  v1::EmbedResponse rest;
  rest.set_model("m");
  const VectorAnswer answer(v1::EmbedResponse::kEmbeddingsFieldNumber, 0);
  grpc::ByteBuffer bytes;
  ASSERT_TRUE(answer.Serialize(rest, kNoLimit, "inputs", &bytes).ok());
  EXPECT_EQ(Parsed(bytes).SerializeAsString(), rest.SerializeAsString());
}

TEST(VectorAnswerTest, AboveTheLimitThereIsNoAnswer) {
  const std::vector<float> values(8);
  const v1::Embedding head;
  VectorAnswer answer(v1::EmbedResponse::kEmbeddingsFieldNumber, 1);
  answer.Add(head, kPacked, values);  // 4 and 32 bytes
  EXPECT_TRUE(answer.CheckSize(36, "inputs").ok());
  EXPECT_EQ(answer.CheckSize(35, "inputs").code(),
            absl::StatusCode::kInvalidArgument);
  grpc::ByteBuffer bytes;
  const v1::EmbedResponse rest;
  EXPECT_TRUE(answer.Serialize(rest, 36, "inputs", &bytes).ok());
  const absl::Status status = answer.Serialize(rest, 35, "inputs", &bytes);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const auto detail = GetErrorDetail(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, "REQUEST_TOO_LARGE");
  EXPECT_EQ(detail->field, "inputs");
  EXPECT_EQ(detail->metadata.at("reply_bytes"), "36");
  EXPECT_EQ(detail->metadata.at("limit"), "35");
}

}  // namespace
}  // namespace encoderd
