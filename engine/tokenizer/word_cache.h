// The ids of stretches of text seen lately. A direct-mapped table of fixed
// size: a new stretch takes the place of the one that had it. Not thread-safe:
// one for each thread.
#ifndef ENCODERD_ENGINE_TOKENIZER_WORD_CACHE_H_
#define ENCODERD_ENGINE_TOKENIZER_WORD_CACHE_H_

#include <cstdint>
#include <cstring>
#include <vector>

namespace encoderd {

class WordCache {
 public:
  static constexpr int kMaxBytes = 32;  // of a stretch
  static constexpr int kMaxIds = 23;    // of a stretch
  // What Copy() copies at least.
  static constexpr int kInlineIds = 7;

  struct Key {
    uint64_t words[4];  // the bytes, then zeros
    uint32_t bytes;
    uint32_t slot;
  };
  // Two cache lines; short entries are read from the first alone.
  struct alignas(64) Entry {
    uint64_t words[4];
    uint16_t bytes;  // 0: nothing here
    uint16_t count;
    int32_t ids[kMaxIds];
  };
  static_assert(sizeof(Entry) == 128);

  WordCache() : entries_(kEntries) {}

  // 1 <= bytes <= kMaxBytes; kMaxBytes bytes must be readable at `text`.
  static Key MakeKey(const char* text, uint32_t bytes) {
    Key key{{Load(text, bytes), 0, 0, 0}, bytes, 0};
    uint64_t hash = key.words[0] * kMultiplier;
    if (bytes > 8) {
      key.words[1] = Load(text + 8, bytes - 8);
      hash = (hash ^ hash >> 32 ^ key.words[1]) * kMultiplier;
      if (bytes > 16) {
        key.words[2] = Load(text + 16, bytes - 16);
        hash = (hash ^ hash >> 32 ^ key.words[2]) * kMultiplier;
        if (bytes > 24) {
          key.words[3] = Load(text + 24, bytes - 24);
          hash = (hash ^ hash >> 32 ^ key.words[3]) * kMultiplier;
        }
      }
    }
    key.slot = static_cast<uint32_t>((hash ^ hash >> 29) * kMultiplier >>
                                     (64 - kSlotBits));
    return key;
  }

  const Entry* Find(const Key& key) const {
    const Entry& entry = entries_[key.slot];
    if (entry.bytes != key.bytes || entry.words[0] != key.words[0]) {
      return nullptr;
    }
    if (key.bytes > 8 &&
        (entry.words[1] != key.words[1] || entry.words[2] != key.words[2] ||
         entry.words[3] != key.words[3])) {
      return nullptr;
    }
    return &entry;
  }

  // Copies ids of an entry, or into one: kInlineIds or more, with one branch.
  static void Copy(int32_t* to, const int32_t* from, int64_t count) {
    std::memcpy(to, from, kInlineIds * sizeof(int32_t));
    if (count > kInlineIds) {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(int32_t));
    }
  }

  // Does nothing when there are more than kMaxIds ids; kInlineIds must be
  // readable.
  void Insert(const Key& key, const int32_t* ids, int64_t count) {
    if (count > kMaxIds) return;
    Entry& entry = entries_[key.slot];
    std::memcpy(entry.words, key.words, sizeof(entry.words));
    entry.bytes = static_cast<uint16_t>(key.bytes);
    entry.count = static_cast<uint16_t>(count);
    Copy(entry.ids, ids, count);
  }

 private:
  static constexpr int kSlotBits = 13;
  static constexpr int kEntries = 1 << kSlotBits;  // 1 MiB
  static constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;

  // The first `bytes` bytes at `text`, at most 8, then zeros.
  static uint64_t Load(const char* text, uint32_t bytes) {
    uint64_t word;
    std::memcpy(&word, text, sizeof(word));
    if (bytes < 8) {
      // The first bytes in memory are the low ones on every machine supported.
      word &= (uint64_t{1} << (8 * bytes)) - 1;
    }
    return word;
  }

  std::vector<Entry> entries_;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_WORD_CACHE_H_
