#include "engine/tokenizer/unigram/byte_trie.h"

#include <algorithm>
#include <numeric>

namespace encoderd {

ByteTrie::ByteTrie(const std::vector<std::string>& entries) {
  std::vector<int32_t> sorted(entries.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  // Of equal entries the last one comes first, and alone stays.
  std::sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) {
    const int order = entries[a].compare(entries[b]);
    return order < 0 || (order == 0 && a > b);
  });
  sorted.erase(std::unique(sorted.begin(), sorted.end(),
                           [&](int32_t a, int32_t b) {
                             return entries[a] == entries[b];
                           }),
               sorted.end());
  // Entries sorted[first, last) share their first `depth` bytes and lead to
  // `state`.
  struct Node {
    int32_t state;
    int32_t first;
    int32_t last;
    uint32_t depth;
  };
  DoubleArray places;
  root_ = places.TakeRoot();
  std::vector<Node> nodes = {
      {root_, 0, static_cast<int32_t>(sorted.size()), 0}};
  std::vector<std::pair<int32_t, int32_t>> ends;  // state, id
  std::vector<uint8_t> bytes;
  std::vector<int32_t> firsts;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node node = nodes[i];
    int32_t at = node.first;
    // An entry that ends here comes first.
    if (at < node.last && entries[sorted[at]].size() == node.depth) {
      ends.push_back({node.state, sorted[at]});
      ++at;
    }
    bytes.clear();
    firsts.clear();
    for (; at < node.last; ++at) {
      const auto byte = static_cast<uint8_t>(entries[sorted[at]][node.depth]);
      if (!bytes.empty() && bytes.back() == byte) continue;
      bytes.push_back(byte);
      firsts.push_back(at);
    }
    if (bytes.empty()) continue;
    firsts.push_back(node.last);
    const int32_t base = places.PlaceChildren(node.state, bytes);
    for (size_t child = 0; child < bytes.size(); ++child) {
      nodes.push_back({base ^ bytes[child], firsts[child], firsts[child + 1],
                       node.depth + 1});
    }
  }
  states_ = places.TakeStates();
  ids_.assign(states_.size(), -1);
  for (const auto& [state, id] : ends) ids_[state] = id;
}

int32_t ByteTrie::Find(absl::string_view entry) const {
  int32_t found = -1;
  Prefixes(entry.data(), entry.data() + entry.size(),
           [&](int32_t id, int32_t bytes) {
             if (static_cast<size_t>(bytes) == entry.size()) found = id;
           });
  return found;
}

}  // namespace encoderd
