#include "engine/tokenizer/double_array.h"

#include <algorithm>

namespace encoderd {
namespace {

constexpr int32_t kBlock = 256;  // states that share the upper bits of a base
constexpr int kMaxTries = 32;    // free places looked at before a new block

}  // namespace

void DoubleArray::AddBlock() {
  const auto old = static_cast<int32_t>(states_.size());
  const int32_t size = old + kBlock;
  states_.resize(size);
  next_free_.resize(size);
  previous_free_.resize(size);
  // Place 0 is the list's head and never a state.
  if (old == 0) next_free_[0] = previous_free_[0] = 0;
  for (int32_t i = std::max(old, 1); i < size; ++i) {
    const int32_t tail = previous_free_[0];
    next_free_[tail] = i;
    previous_free_[i] = tail;
    next_free_[i] = 0;
    previous_free_[0] = i;
  }
}

void DoubleArray::Take(int32_t state, int32_t parent) {
  next_free_[previous_free_[state]] = next_free_[state];
  previous_free_[next_free_[state]] = previous_free_[state];
  next_free_[state] = -1;
  states_[state].parent = parent;
}

int32_t DoubleArray::FindBase(absl::Span<const uint8_t> bytes) {
  int tries = 0;
  for (int32_t place = next_free_[0]; place != 0 && tries < kMaxTries;
       place = next_free_[place], ++tries) {
    const int32_t base = place ^ bytes[0];
    const bool fits = std::all_of(bytes.begin(), bytes.end(), [&](uint8_t x) {
      const int32_t state = base ^ x;
      return state != 0 && next_free_[state] >= 0;
    });
    if (fits) return base;
  }
  const auto base = static_cast<int32_t>(states_.size());
  AddBlock();
  return base;
}

int32_t DoubleArray::TakeRoot() {
  if (next_free_[0] == 0) AddBlock();
  const int32_t root = next_free_[0];
  Take(root, -2);
  return root;
}

int32_t DoubleArray::PlaceChildren(int32_t state,
                                   absl::Span<const uint8_t> bytes) {
  const int32_t base = FindBase(bytes);
  states_[state].base = base;
  for (const uint8_t byte : bytes) Take(base ^ byte, state);
  return base;
}

std::vector<DoubleArray::Node> DoubleArray::PlaceTries(
    const std::vector<std::string>& entries, const std::vector<int32_t>& sorted,
    std::vector<Node> nodes) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node node = nodes[i];
    int32_t at = node.first;
    // Sorted: an entry that ends here comes first.
    if (at < node.last && entries[sorted[at]].size() == node.depth) ++at;
    const size_t children = nodes.size();
    bytes.clear();
    for (; at < node.last; ++at) {
      const auto byte = static_cast<uint8_t>(entries[sorted[at]][node.depth]);
      if (bytes.empty() || bytes.back() != byte) {
        bytes.push_back(byte);
        nodes.push_back({0, at, at, node.depth + 1});
      }
      nodes.back().last = at + 1;
    }
    if (bytes.empty()) continue;
    const int32_t base = PlaceChildren(node.state, bytes);
    for (size_t child = 0; child < bytes.size(); ++child)
      nodes[children + child].state = base ^ bytes[child];
  }
  return nodes;
}

}  // namespace encoderd
