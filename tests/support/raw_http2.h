// A gRPC caller in bare HTTP/2 frames that gives its peer no window: calls are
// made, answers wait forever, only their headers and ends may come. No gRPC.
#ifndef ENCODERD_TESTS_SUPPORT_RAW_HTTP2_H_
#define ENCODERD_TESTS_SUPPORT_RAW_HTTP2_H_

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/loopback.h"
#include "tests/support/patience.h"

namespace encoderd {

class RawHttp2 {
 public:
  static constexpr uint8_t kData = 0;
  static constexpr uint8_t kHeaders = 1;
  static constexpr uint8_t kResetStream = 3;
  static constexpr uint8_t kSettings = 4;
  static constexpr uint8_t kPing = 6;
  static constexpr uint8_t kGoAway = 7;
  static constexpr uint8_t kWindowUpdate = 8;
  static constexpr uint8_t kEnded = 0xff;  // of no frame: the peer hung up

  // Connects to loopback and says that a stream's window is 0.
  // from: the caller's own address, of 127.0.0.0/8.
  explicit RawHttp2(int port, const char* from = "127.0.0.1")
      : fd_(Connect(port, from)) {
    Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    constexpr char kInitialWindowSize = 4;
    SendFrame(kSettings, 0, 0,
              {'\0', kInitialWindowSize, '\0', '\0', '\0', '\0'});
  }
  // A peer that wants no more connections hangs up before it says a word.
  static bool IsClosedAtOnce(int port, const char* from = "127.0.0.1") {
    const int fd = Connect(port, from);
    char byte = 0;
    const ssize_t size = recv(fd, &byte, 1, 0);
    close(fd);
    return size <= 0 && (size == 0 || errno == ECONNRESET);
  }
  ~RawHttp2() { close(fd_); }
  RawHttp2(const RawHttp2&) = delete;
  RawHttp2& operator=(const RawHttp2&) = delete;

  // Calls "/package.Service/Method" with one message; the caller's side stays
  // open. Streams are numbered 1, 3, ...: the call's is returned. missing: this
  // many bytes of the message are announced beyond those sent. more: headers,
  // names and values below 127 bytes.
  using Headers = std::vector<std::pair<std::string, std::string>>;
  uint32_t Call(const std::string& path, const std::string& message,
                size_t missing = 0, const Headers& more = {}) {
    const uint32_t stream = next_stream_;
    next_stream_ += 2;
    SendFrame(kHeaders, kEndHeaders, stream, HeaderBlock(path, more));
    SendFrame(
        kData, 0, stream,
        std::string(1, '\0') + Number(message.size() + missing, 4) + message);
    return stream;
  }
  // One more message of a call.
  void SendMessage(uint32_t stream, const std::string& message) {
    SendFrame(kData, 0, stream,
              std::string(1, '\0') + Number(message.size(), 4) + message);
  }
  // As a caller who goes away: RST_STREAM with CANCEL.
  void Reset(uint32_t stream) {
    constexpr uint64_t kCancel = 8;
    SendFrame(kResetStream, 0, stream, Number(kCancel, 4));
  }
  // From now on its answers may come. False: the peer takes nothing more.
  bool TryWiden(uint32_t stream) {
    return TrySend(FrameHead(kWindowUpdate, 0, stream, 4) + Number(1 << 20, 4));
  }
  // Calls with headers that are cut short, and sends no more.
  void CutHeadersOf(const std::string& path) {
    const std::string headers = HeaderBlock(path, {{"authorization", "Bea"}});
    constexpr size_t kMissing = 8;
    Send(FrameHead(kHeaders, kEndHeaders, next_stream_, headers.size()) +
         headers.substr(0, headers.size() - kMissing));
    EXPECT_EQ(shutdown(fd_, SHUT_WR), 0);
  }
  void Ping() { EXPECT_TRUE(TryPing()); }
  // False: the peer takes nothing more.
  bool TryPing() {
    return TrySend(FrameHead(kPing, 0, 0, 8) + std::string(8, 'p'));
  }
  // The caller's side ends without more.
  void HalfClose(uint32_t stream) {
    constexpr uint8_t kEndStream = 1;
    SendFrame(kData, kEndStream, stream, "");
  }

  // Passes over frames until one with headers came. False: the peer hung up.
  bool ReadHeaders() { return ReadUntil(kHeaders); }

  // Passes over frames until one of this type came. False: the peer hung up.
  bool ReadUntil(uint8_t wanted) {
    uint8_t type = 0;
    do {
      type = ReadFrame();
    } while (type != wanted && type != kEnded);
    return type == wanted;
  }

  // The type of the next frame, whose payload is kept until the one after it.
  uint8_t ReadFrame() {
    const std::string head = Receive(9);
    if (head.size() < 9) return kEnded;
    size_t size = 0;
    for (int i = 0; i < 3; ++i)
      size = size << 8 | static_cast<uint8_t>(head[i]);
    payload_ = Receive(size);
    if (payload_.size() < size) return kEnded;
    return static_cast<uint8_t>(head[3]);
  }
  const std::string& payload() const { return payload_; }

 private:
  static constexpr uint8_t kEndHeaders = 4;

  static std::string HeaderBlock(const std::string& path, const Headers& more) {
    std::string headers;
    Headers all = {{":method", "POST"}, {":scheme", "http"},
                   {":path", path},     {":authority", "test"},
                   {"te", "trailers"},  {"content-type", "application/grpc"}};
    all.insert(all.end(), more.begin(), more.end());
    for (const auto& [name, value] : all) {
      // Literal, without indexing, lengths below 127.
      headers += '\0';
      headers += static_cast<char>(name.size()) + name;
      headers += static_cast<char>(value.size()) + value;
    }
    return headers;
  }
  static std::string FrameHead(uint8_t type, uint8_t flags, uint32_t stream,
                               size_t size) {
    return Number(size, 3) + static_cast<char>(type) +
           static_cast<char>(flags) + Number(stream, 4);
  }
  static int Connect(int port, const char* from) {
    const int fd = NewTcpSocket();
    EXPECT_NE(BindLoopback(fd, from), 0);
    const timeval patience = {absl::ToInt64Seconds(kPatience), 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    EXPECT_TRUE(ConnectLoopback(fd, port));
    return fd;
  }
  static std::string Number(size_t value, int bytes) {
    std::string text;
    while (--bytes >= 0) text += static_cast<char>(value >> (8 * bytes) & 0xff);
    return text;
  }
  void SendFrame(uint8_t type, uint8_t flags, uint32_t stream,
                 const std::string& payload) {
    Send(FrameHead(type, flags, stream, payload.size()) + payload);
  }
  bool TrySend(const std::string& bytes) {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  void Send(const std::string& bytes) { EXPECT_TRUE(TrySend(bytes)); }
  // Fewer bytes where the peer hung up or the time is up.
  std::string Receive(size_t size) {
    std::string bytes(size, '\0');
    size_t have = 0;
    while (have < size) {
      const ssize_t more = recv(fd_, &bytes[have], size - have, 0);
      if (more <= 0) break;
      have += static_cast<size_t>(more);
    }
    bytes.resize(have);
    return bytes;
  }

  const int fd_;
  uint32_t next_stream_ = 1;
  std::string payload_;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_RAW_HTTP2_H_
