// What one stream holds: the requests in progress, and the answers that the
// transport has yet to take. Bounded, so that the requests of a caller that
// stops reading its answers soon stay unread. Not thread-safe: a plain value.
#ifndef ENCODERD_SERVER_RPC_STREAM_WINDOW_H_
#define ENCODERD_SERVER_RPC_STREAM_WINDOW_H_

#include <cstdint>

namespace encoderd {

class StreamWindow {
 public:
  // Enough to keep a device busy with requests of one text each, and with
  // requests of a hundred.
  static constexpr int64_t kMaxRequests = 64;
  static constexpr int64_t kMaxBytes = 1 << 20;

  // A request with about this many bytes, or its answer, which takes its place.
  void Add(int64_t bytes) {
    ++requests_;
    bytes_ += bytes;
  }
  // Undoes Add(bytes).
  void Remove(int64_t bytes) {
    --requests_;
    bytes_ -= bytes;
  }

  bool empty() const { return requests_ == 0; }
  // Whether the next request may be read, whatever its size: one request and
  // its answer may be held beyond kMaxBytes.
  bool Room() const {
    return empty() || (requests_ < kMaxRequests && bytes_ < kMaxBytes);
  }

 private:
  int64_t requests_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_STREAM_WINDOW_H_
