// "Precompiled": the character map that sentencepiece writes into its models.
//
//   u32 bytes of the trie (a multiple of 4), little-endian, like all below
//   the trie: a double array of u32 units; of a unit
//     bits 0-7   the byte that leads to it
//     bit 8      a key ends here: its value is the unit at the base
//     bits 10-30 offset, shifted left by 8 if bit 9 is set; base = place of the
//                unit ^ offset; the child by byte b is at base ^ b
//     a value has bit 31 set; the rest is an offset into
//   texts, each ended by NUL: what a key becomes
//
// A grapheme cluster of less than six bytes becomes what the shortest key that
// it begins with says; where there is none, and in longer clusters, each
// character is looked up by itself. This is how the reference reads the map.
// Constant after Parse; thread-safe.
#ifndef ENCODERD_ENGINE_TOKENIZER_UNIGRAM_CHARS_MAP_H_
#define ENCODERD_ENGINE_TOKENIZER_UNIGRAM_CHARS_MAP_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/tokenizer/normal_text.h"

namespace encoderd {

class CharsMap {
 public:
  static constexpr size_t kMaxBytes = 16 << 20;

  // DATA_LOSS: not of that form; a value that leads out of the texts or into
  // the middle of a character.
  static absl::StatusOr<CharsMap> Parse(absl::string_view bytes);

  // False: nothing changes, and *out means nothing.
  bool Apply(const NormalText& in, NormalText* out) const;

  // The whole map; maps that differ have others.
  std::string bytes() const;

  // What the shortest key that `text` begins with becomes.
  std::optional<absl::string_view> Find(absl::string_view text) const;

 private:
  absl::Status CheckValues() const;

  std::vector<uint32_t> units_;
  std::string texts_;
  // ASCII characters that are never changed, whatever ASCII is next to them.
  std::array<bool, 128> plain_{};
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_UNIGRAM_CHARS_MAP_H_
