// A class for every code point, one look away: blocks of 256, of which equal
// ones are stored once. Constant after construction; thread-safe.
#ifndef ENCODERD_ENGINE_TOKENIZER_UNICODE_CODE_POINT_TABLE_H_
#define ENCODERD_ENGINE_TOKENIZER_UNICODE_CODE_POINT_TABLE_H_

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/tokenizer/unicode/unicode_rules.h"

namespace encoderd {

class CodePointTable {
 public:
  explicit CodePointTable(uint8_t (*class_of)(char32_t)) {
    using Block = std::array<uint8_t, kBlock>;
    std::map<Block, uint16_t> known;
    for (char32_t first = 0; first < unicode::kCodePoints; first += kBlock) {
      if (first > unicode::kEmptyFirst && first < unicode::kEmptyEnd) {
        blocks_[first / kBlock] = blocks_[first / kBlock - 1];
        continue;
      }
      Block block;
      for (char32_t i = 0; i < kBlock; ++i) block[i] = class_of(first + i);
      const auto [found, is_new] = known.try_emplace(
          block, static_cast<uint16_t>(classes_.size() / kBlock));
      if (is_new) classes_.insert(classes_.end(), block.begin(), block.end());
      blocks_[first / kBlock] = found->second;
    }
  }

  uint8_t operator[](char32_t c) const {
    return classes_[blocks_[c / kBlock] * kBlock + c % kBlock];
  }

 private:
  static constexpr char32_t kBlock = 256;

  std::array<uint16_t, unicode::kCodePoints / kBlock> blocks_{};
  std::vector<uint8_t> classes_;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_UNICODE_CODE_POINT_TABLE_H_
