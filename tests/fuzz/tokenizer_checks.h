// What holds for every tokenizer and every text; shared by the targets that
// encode.
#ifndef ENCODERD_TESTS_FUZZ_TOKENIZER_CHECKS_H_
#define ENCODERD_TESTS_FUZZ_TOKENIZER_CHECKS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>

#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/fuzz/require.h"

namespace encoderd {

struct FuzzSubject {
  std::unique_ptr<const Tokenizer> tokenizer;
  TokenizerScratchPtr scratch;
};

// The tokenizer that `make` makes for `switches` when they are first asked
// for. All calls of a program give the same `make`.
inline FuzzSubject& SubjectFor(
    int switches, std::unique_ptr<const Tokenizer> (*make)(int switches)) {
  static auto& subjects = *new std::map<int, FuzzSubject>;
  FuzzSubject& subject = subjects[switches];
  if (subject.tokenizer == nullptr) {
    subject.tokenizer = make(switches);
    subject.scratch = subject.tokenizer->NewScratch();
  }
  return subject;
}

// Encodes `text`, as a pair of its halves or whole. Text that is not UTF-8 is
// refused; for the rest the fast way and the way with offsets must agree, a
// second encoding must equal the first (the cache), offsets lie in the text,
// and a cut to `room` tokens besides the special ones keeps its promise.
inline void CheckEncoding(const FuzzSubject& subject, absl::string_view text,
                          bool pair, int room) {
  const absl::string_view second = pair ? text.substr(text.size() / 2) : "";
  const absl::string_view first = pair ? text.substr(0, text.size() / 2) : text;
  const bool valid = !utf8::FindInvalid(first).has_value() &&
                     !utf8::FindInvalid(second).has_value();
  const auto encode = [&](bool offsets, Encoding* out) {
    Tokenizer::EncodeOptions options;
    options.offsets = offsets;
    const absl::Status status =
        pair ? subject.tokenizer->EncodePair(first, second, options,
                                             subject.scratch.get(), out)
             : subject.tokenizer->Encode(first, options, subject.scratch.get(),
                                         out);
    Require(status.ok() == valid);
  };
  Encoding fast, again, slow;
  encode(false, &fast);
  encode(false, &again);
  encode(true, &slow);
  if (!valid) return;
  Require(fast.token_ids == slow.token_ids &&
          fast.token_ids == again.token_ids);
  Require(fast.segment_ids == slow.segment_ids);
  Require(slow.offsets.size() == slow.token_ids.size() &&
          slow.special.size() == slow.token_ids.size());
  const size_t longest = std::max(first.size(), second.size());
  for (size_t i = 0; i < slow.offsets.size(); ++i) {
    Require(slow.token_ids[i] >= 0 &&
            slow.token_ids[i] < subject.tokenizer->vocab_size());
    const auto [begin, end] = slow.offsets[i];
    Require(begin >= 0 && end >= 0 && static_cast<size_t>(begin) <= longest &&
            static_cast<size_t>(end) <= longest);
  }
  const auto tokens = static_cast<int64_t>(slow.token_ids.size());
  const int64_t max_len = subject.tokenizer->num_special_tokens(pair) + room;
  subject.tokenizer->Truncate(
      max_len, room % 2 == 1 ? TruncateSide::kStart : TruncateSide::kEnd,
      &slow);
  Require(static_cast<int64_t>(slow.token_ids.size()) ==
          std::min(tokens, max_len));
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_FUZZ_TOKENIZER_CHECKS_H_
