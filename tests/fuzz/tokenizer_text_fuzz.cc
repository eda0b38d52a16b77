// Any bytes as text. The first byte chooses the normaliser's switches and a
// pair. Text that is not UTF-8 is refused; for the rest the fast way and the
// way with offsets must agree, a second encoding must equal the first (the
// cache), offsets lie in the text, and a cut keeps its promise.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/tokenizer/bert_tokenizer.h"
#include "engine/tokenizer/utf8.h"

namespace {

using encoderd::Encoding;
using encoderd::Tokenizer;

void Require(bool condition) {
  if (!condition) abort();
}

struct Subject {
  std::unique_ptr<const Tokenizer> tokenizer;
  encoderd::TokenizerScratchPtr scratch;
};

Subject MakeSubject(int switches) {
  encoderd::TokenizerSpec spec;
  spec.vocabulary = {"[PAD]",  "[UNK]",    "[CLS]",    "[SEP]",   "a",
                     "b",      "ab",       "##a",      "##b",     "##ab",
                     "abab",   "e",        "##e",      "i",       "##\u0307",
                     "\u1100", "##\u1161", "##\u11a8", "\u4e2d",  ",",
                     "\u0915", "##\u093e", "\u302e",   "##\u302f"};
  for (int id = 0; id < 4; ++id) {
    spec.added_tokens.push_back({spec.vocabulary[id], id});
  }
  spec.added_tokens.push_back({"<w>", 24, true, true, true, false});
  // Looked for in normalised text, which leaves no fast way.
  if ((switches & 16) != 0) {
    spec.added_tokens.push_back({"\u00c9 a", 25, false, true, false, true});
  }
  spec.post_processor = encoderd::Template::Bert(2, 3);
  spec.word_piece.max_word_chars = 12;
  spec.normalizer = {(switches & 1) == 0, (switches & 2) == 0,
                     (switches & 4) == 0, (switches & 8) == 0};
  auto tokenizer = encoderd::BertTokenizer::Create(std::move(spec));
  Require(tokenizer.ok());
  Subject subject{*std::move(tokenizer), nullptr};
  subject.scratch = subject.tokenizer->NewScratch();
  return subject;
}

Subject& SubjectFor(int switches) {
  static auto& subjects = *new std::vector<Subject>(32);
  Subject& subject = subjects[switches];
  if (subject.tokenizer == nullptr) subject = MakeSubject(switches);
  return subject;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  Subject& subject = SubjectFor(data[0] & 31);
  const bool pair = (data[0] & 32) != 0;
  const absl::string_view text(reinterpret_cast<const char*>(data) + 1,
                               size - 1);
  const absl::string_view second = pair ? text.substr(text.size() / 2) : "";
  const absl::string_view first = pair ? text.substr(0, text.size() / 2) : text;
  const bool valid = !encoderd::utf8::FindInvalid(first).has_value() &&
                     !encoderd::utf8::FindInvalid(second).has_value();
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
  if (!valid) return 0;
  Require(fast.token_ids == slow.token_ids &&
          fast.token_ids == again.token_ids);
  Require(fast.segment_ids == slow.segment_ids);
  Require(slow.offsets.size() == slow.token_ids.size() &&
          slow.special.size() == slow.token_ids.size());
  for (size_t i = 0; i < slow.offsets.size(); ++i) {
    Require(slow.token_ids[i] >= 0 &&
            slow.token_ids[i] < subject.tokenizer->vocab_size());
    const auto [begin, end] = slow.offsets[i];
    const absl::string_view whole = slow.segment_ids[i] == 0 ? first : second;
    Require(begin >= 0 && end >= 0 &&
            static_cast<size_t>(begin) <= whole.size() &&
            static_cast<size_t>(end) <= whole.size());
  }
  const auto tokens = static_cast<int64_t>(slow.token_ids.size());
  const int64_t max_len =
      subject.tokenizer->num_special_tokens(pair) + (data[0] >> 6);
  subject.tokenizer->Truncate(max_len,
                              (size & 1) != 0 ? encoderd::TruncateSide::kStart
                                              : encoderd::TruncateSide::kEnd,
                              &slow);
  Require(static_cast<int64_t>(slow.token_ids.size()) ==
          std::min(tokens, max_len));
  return 0;
}
