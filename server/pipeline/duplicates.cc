#include "server/pipeline/duplicates.h"

#include <bit>
#include <cstring>

namespace encoderd {
namespace {

constexpr int32_t kFree = -1;

// Of the token ids alone: sequences that differ in the others only are rare.
// One multiplication for two ids, because every sequence pays for it.
uint64_t Hash(const std::vector<int32_t>& ids) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;
  uint64_t hash = ids.size();
  size_t i = 0;
  for (; i + 2 <= ids.size(); i += 2) {
    uint64_t two = 0;
    std::memcpy(&two, ids.data() + i, sizeof(two));
    hash = (hash ^ two) * kOdd;
  }
  if (i < ids.size()) hash = (hash ^ static_cast<uint32_t>(ids[i])) * kOdd;
  return hash ^ (hash >> 32);
}

bool Equal(const TokenSequence& a, const TokenSequence& b) {
  return a.token_ids == b.token_ids && a.segment_ids == b.segment_ids &&
         a.position_ids == b.position_ids;
}

}  // namespace

void Duplicates::Begin(int64_t sequences) {
  rows_.clear();
  rows_.reserve(sequences);
  slots_.assign(std::bit_ceil(static_cast<uint64_t>(sequences) * 2), kFree);
}

int32_t Duplicates::RowOf(const TokenSequence& ids,
                          const SequenceOutput& output) {
  const uint64_t hash = Hash(ids.token_ids);
  const size_t mask = slots_.size() - 1;
  const int32_t next = rows();
  for (size_t i = 0; i < kMostCompared; ++i) {
    int32_t& slot = slots_[(hash + i) & mask];
    if (slot == kFree) {
      slot = next;
      break;
    }
    const Row& row = rows_[slot];
    if (row.hash == hash && row.output == output && Equal(*row.ids, ids)) {
      return slot;
    }
  }
  rows_.push_back({hash, &ids, output});
  return next;
}

}  // namespace encoderd
