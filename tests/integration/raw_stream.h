// EmbedStream in bytes: what is no message, and a caller that parses nothing.
#ifndef ENCODERD_TESTS_INTEGRATION_RAW_STREAM_H_
#define ENCODERD_TESTS_INTEGRATION_RAW_STREAM_H_

#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "encoderd/v1/encoder.pb.h"
#include "grpcpp/generic/generic_stub.h"
#include "tests/support/patience.h"
#include "tests/support/test_server.h"

namespace encoderd {

// Used by one thread. Each method waits; false: the stream has ended.
class RawStream {
 public:
  explicit RawStream(TestServer* server) : stub_(server->channel()) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    stream_ = stub_.PrepareCall(&context_, "/encoderd.v1.Encoder/EmbedStream",
                                &queue_);
    stream_->StartCall(nullptr);
    Next();
  }

  bool Write(const grpc::ByteBuffer& bytes) {
    stream_->Write(bytes, nullptr);
    return Next();
  }
  bool Write(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    return Write(grpc::ByteBuffer(&slice, 1));
  }
  bool HalfClose() {
    stream_->WritesDone(nullptr);
    return Next();
  }
  bool Read(grpc::ByteBuffer* bytes) {
    stream_->Read(bytes, nullptr);
    return Next();
  }
  bool Read(v1::EmbedResponse* response) {
    grpc::ByteBuffer bytes;
    return Read(&bytes) && Parse(bytes, response);
  }
  grpc::Status Finish() {
    grpc::Status status;
    stream_->Finish(&status, nullptr);
    Next();
    return status;
  }

  static bool Parse(const grpc::ByteBuffer& bytes,
                    v1::EmbedResponse* response) {
    grpc::Slice slice;
    return bytes.DumpToSingleSlice(&slice).ok() &&
           response->ParseFromArray(slice.begin(),
                                    static_cast<int>(slice.size()));
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_INTEGRATION_RAW_STREAM_H_
