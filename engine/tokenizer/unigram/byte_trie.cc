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
  DoubleArray places;
  root_ = places.TakeRoot();
  const std::vector<DoubleArray::Node> nodes = places.PlaceTries(
      entries, sorted, {{root_, 0, static_cast<int32_t>(sorted.size()), 0}});
  states_ = places.TakeStates();
  ids_.assign(states_.size(), -1);
  for (const DoubleArray::Node& node : nodes) {
    if (node.first < node.last &&
        entries[sorted[node.first]].size() == node.depth)
      ids_[node.state] = sorted[node.first];
  }
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
