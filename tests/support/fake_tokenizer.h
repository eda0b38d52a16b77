// A Tokenizer without a vocabulary: one token for each byte.
//
// Byte c is token kFirstByte + c, between kCls and kSep; of a pair, kCls first
// kSep second kSep, segments 0 and 1. The byte 0xFF is refused with
// INVALID_UTF8; the text "throw" throws, and a longer one that begins with it
// when it is cut. A gate lets tests hold texts back.
// Thread-safe.
#ifndef ENCODERD_TESTS_SUPPORT_FAKE_TOKENIZER_H_
#define ENCODERD_TESTS_SUPPORT_FAKE_TOKENIZER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/tokenizer/tokenizer.h"

namespace encoderd {

class FakeTokenizer final : public Tokenizer {
 public:
  static constexpr int32_t kCls = 1;
  static constexpr int32_t kSep = 2;
  static constexpr int32_t kFirstByte = 3;
  static constexpr int32_t kVocab = kFirstByte + 256;

  static int32_t Id(char c) {
    return kFirstByte + static_cast<unsigned char>(c);
  }

  // Closed: texts of at least `min_bytes` wait at the start of Encode.
  void CloseGate(int64_t min_bytes = 0);
  void OpenGate();
  // Waits until this many texts are at the gate; false after kPatience.
  bool WaitForTextsAtGate(int texts);
  // The most texts that were at the gate at the same time so far.
  int most_at_gate() const;

  void ThrowForScratch() { no_scratch_ = true; }
  // Whether asking for the special tokens of a text, or of a pair, throws.
  void ThrowForSpecialTokens(bool pair, bool on) { no_special_[pair] = on; }

  TokenizerScratchPtr NewScratch() const override;
  absl::Status Encode(absl::string_view text, const EncodeOptions& options,
                      TokenizerScratch* scratch, Encoding* out) const override;
  absl::Status EncodePair(absl::string_view first, absl::string_view second,
                          const EncodeOptions& options,
                          TokenizerScratch* scratch,
                          Encoding* out) const override;
  void Truncate(int64_t max_len, TruncateSide side,
                Encoding* encoding) const override;
  int32_t vocab_size() const override { return kVocab; }
  absl::string_view Token(int32_t id) const override;
  bool is_special(int32_t id) const override { return id < kFirstByte; }
  int32_t num_special_tokens(bool pair) const override;
  const std::string& algorithm() const override { return algorithm_; }
  const TokenizerRemarks& remarks() const override { return remarks_; }
  const std::string& rules_sha256() const override { return rules_sha256_; }

 private:
  void PassGate(int64_t bytes) const;

  const std::string algorithm_ = "Bytes";
  const TokenizerRemarks remarks_{};
  const std::string rules_sha256_ = "bytes";
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::atomic<bool> gate_closed_{false};
  std::atomic<bool> no_scratch_{false};
  std::atomic<bool> no_special_[2] = {false, false};
  int64_t gate_min_bytes_ = 0;
  mutable int at_gate_ = 0;
  mutable int most_at_gate_ = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_FAKE_TOKENIZER_H_
