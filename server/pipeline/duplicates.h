// Which sequences of a batch are equal, so that the device computes each of
// them once: its bits depend on its own ids and output spec only
// (engine/session.h).
//
// Equal are sequences with the same token, segment and position ids, given or
// left out alike, and the same output spec. A sequence is compared with at most
// kMostCompared others, so that no choice of ids makes a batch slow; an equal
// one that is missed is computed again, with the same bits. Cost: a hash of the
// token ids of each sequence. Not thread-safe.
#ifndef ENCODERD_SERVER_PIPELINE_DUPLICATES_H_
#define ENCODERD_SERVER_PIPELINE_DUPLICATES_H_

#include <cstdint>
#include <vector>

#include "engine/base/batch.h"
#include "engine/session.h"

namespace encoderd {

class Duplicates {
 public:
  static constexpr int kMostCompared = 16;

  // For a batch of at most this many sequences; forgets those before. Throws
  // std::bad_alloc.
  void Begin(int64_t sequences);
  // The row of an equal sequence. If there is none, this one is the next row:
  // rows are numbered from 0 in the order of these calls. `ids` must live until
  // the next Begin.
  int32_t RowOf(const TokenSequence& ids, const SequenceOutput& output);
  int32_t rows() const { return static_cast<int32_t>(rows_.size()); }

 private:
  struct Row {
    uint64_t hash;
    const TokenSequence* ids;
    SequenceOutput output;
  };

  std::vector<Row> rows_;
  // A hash table: a power of two of slots, at least twice the sequences; a row,
  // or kFree.
  std::vector<int32_t> slots_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_DUPLICATES_H_
