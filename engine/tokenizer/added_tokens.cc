#include "engine/tokenizer/added_tokens.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/unicode/unicode_rules.h"

namespace encoderd {
namespace {

bool WordBefore(absl::string_view text, int64_t at) {
  int length;
  return at > 0 && unicode::IsWordChar(
                       utf8::DecodeAt(text, utf8::Previous(text, at), &length));
}

bool WordAfter(absl::string_view text, int64_t at) {
  int length;
  return at < static_cast<int64_t>(text.size()) &&
         unicode::IsWordChar(utf8::DecodeAt(text, at, &length));
}

// Goes back from `at` over white space, not beyond `limit`.
int64_t SpaceBegin(absl::string_view text, int64_t at, int64_t limit) {
  while (at > limit) {
    const int64_t before = utf8::Previous(text, at);
    int length;
    if (!unicode::IsSpace(utf8::DecodeAt(text, before, &length))) break;
    at = before;
  }
  return std::max(at, limit);
}

int64_t SpaceEnd(absl::string_view text, int64_t at) {
  while (at < static_cast<int64_t>(text.size())) {
    int length;
    if (!unicode::IsSpace(utf8::DecodeAt(text, at, &length))) break;
    at += length;
  }
  return at;
}

}  // namespace

absl::StatusOr<AddedTokens> AddedTokens::Build(std::vector<AddedToken> tokens) {
  if (static_cast<int64_t>(tokens.size()) > kMaxTokens) {
    return absl::DataLossError(absl::StrCat("the tokenizer has ", tokens.size(),
                                            " added tokens; at most ",
                                            kMaxTokens));
  }
  AddedTokens out;
  out.tokens_ = std::move(tokens);
  std::sort(out.tokens_.begin(), out.tokens_.end(),
            [](const AddedToken& a, const AddedToken& b) {
              return a.content < b.content;
            });
  int starts = 0;
  for (size_t i = 0; i < out.tokens_.size(); ++i) {
    const AddedToken& token = out.tokens_[i];
    const int64_t bytes = static_cast<int64_t>(token.content.size());
    if (bytes == 0 || bytes > kMaxContentBytes) {
      return absl::DataLossError(absl::StrCat(
          "added token ", token.id, " has ", bytes,
          " bytes of content; it must have 1 to ", kMaxContentBytes));
    }
    if (i > 0 && out.tokens_[i - 1].content == token.content) {
      return absl::DataLossError(absl::StrCat(
          "added tokens ", out.tokens_[i - 1].id, " and ", token.id,
          " both match \"", absl::CHexEscape(token.content), "\""));
    }
    const auto start = static_cast<uint8_t>(token.content[0]);
    if (!out.starts_[start]) ++starts;
    out.starts_[start] = true;
    out.only_start_ = starts == 1 ? start : -1;
  }
  return out;
}

size_t AddedTokens::NextCandidate(absl::string_view text, size_t from) const {
  if (only_start_ >= 0) {
    const void* found =
        std::memchr(text.data() + from, only_start_, text.size() - from);
    return found == nullptr ? text.size()
                            : static_cast<const char*>(found) - text.data();
  }
  while (from < text.size() && !starts_[static_cast<uint8_t>(text[from])]) {
    ++from;
  }
  return from;
}

const AddedToken* AddedTokens::LongestAt(absl::string_view text,
                                         size_t at) const {
  // tokens_[first..last) share the text's first `depth` bytes.
  auto first = tokens_.begin();
  auto last = tokens_.end();
  const AddedToken* longest = nullptr;
  for (size_t depth = 0; first != last; ++depth) {
    if (first->content.size() == depth) longest = &*first++;
    if (at + depth >= text.size()) break;
    const auto byte = static_cast<uint8_t>(text[at + depth]);
    const auto at_depth = [depth](const AddedToken& token) {
      return static_cast<uint8_t>(token.content[depth]);
    };
    first = std::partition_point(
        first, last, [&](const AddedToken& x) { return at_depth(x) < byte; });
    last = std::partition_point(
        first, last, [&](const AddedToken& x) { return at_depth(x) == byte; });
  }
  return longest;
}

void AddedTokens::Split(absl::string_view text,
                        std::vector<Piece>* pieces) const {
  pieces->clear();
  int64_t done = 0;       // the pieces cover the text up to here
  int64_t space_end = 0;  // where the last rstrip found the end of the spaces
  size_t at = tokens_.empty() ? text.size() : 0;
  while ((at = NextCandidate(text, at)) < text.size()) {
    const AddedToken* token = LongestAt(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    auto begin = static_cast<int64_t>(at);
    int64_t end = begin + static_cast<int64_t>(token->content.size());
    at = static_cast<size_t>(end);
    if (token->single_word &&
        (WordBefore(text, begin) || WordAfter(text, end))) {
      continue;
    }
    if (token->lstrip)
      begin = std::max(SpaceBegin(text, begin, std::min(begin, done)), done);
    if (token->rstrip) {
      // A token of white space may be found inside spaces already taken.
      end = end < space_end ? space_end : SpaceEnd(text, end);
      space_end = end;
    }
    if (done < begin) pieces->push_back({done, begin, -1});
    // Spaces that the one before took may leave it nothing, and it may end
    // before they do: what follows begins there, as in the reference.
    if (begin < end) pieces->push_back({begin, end, token->id});
    done = end;
  }
  if (done < static_cast<int64_t>(text.size())) {
    pieces->push_back({done, static_cast<int64_t>(text.size()), -1});
  }
}

}  // namespace encoderd
