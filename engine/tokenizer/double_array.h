// A double array of tries while it is built: which places of it are taken, and
// where the children of a state fit. Used by one thread.
#ifndef ENCODERD_ENGINE_TOKENIZER_DOUBLE_ARRAY_H_
#define ENCODERD_ENGINE_TOKENIZER_DOUBLE_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace encoderd {

class DoubleArray {
 public:
  struct State {
    int32_t base = 0;     // the child by `byte` is base ^ byte,
    int32_t parent = -1;  // if that state's parent is this one
  };

  DoubleArray() { AddBlock(); }

  // A state without a parent.
  int32_t TakeRoot();

  // The entries sorted[first, last) share their first `depth` bytes, which lead
  // to `state`.
  struct Node {
    int32_t state;
    int32_t first;
    int32_t last;
    size_t depth;
  };
  // Takes places for the tries below `nodes`, their roots. Returns all nodes,
  // breadth first, the roots in front; where an entry ends, it is the node's
  // first. `sorted`: indices of `entries` in the order of their bytes, no entry
  // twice.
  std::vector<Node> PlaceTries(const std::vector<std::string>& entries,
                               const std::vector<int32_t>& sorted,
                               std::vector<Node> nodes);

  std::vector<State> TakeStates() { return std::move(states_); }

 private:
  void AddBlock();
  // Takes places for all children of a state, at least one, each byte once;
  // returns the state's base.
  int32_t PlaceChildren(int32_t state, absl::Span<const uint8_t> bytes);
  void Take(int32_t state, int32_t parent);
  int32_t FindBase(absl::Span<const uint8_t> bytes);

  std::vector<State> states_;
  std::vector<int32_t> next_free_, previous_free_;  // circular, from head 0
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_DOUBLE_ARRAY_H_
