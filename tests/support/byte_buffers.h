// Messages as gRPC hands them over. Thread-safe: plain functions.
#ifndef ENCODERD_TESTS_SUPPORT_BYTE_BUFFERS_H_
#define ENCODERD_TESTS_SUPPORT_BYTE_BUFFERS_H_

#include <string>
#include <vector>

#include "grpcpp/support/byte_buffer.h"

namespace encoderd {

inline grpc::ByteBuffer Bytes(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

// In slices of one byte, as a slow network may deliver it.
inline grpc::ByteBuffer Crumbs(const std::string& text) {
  std::vector<grpc::Slice> slices;
  for (char c : text) slices.emplace_back(std::string(1, c));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_BYTE_BUFFERS_H_
