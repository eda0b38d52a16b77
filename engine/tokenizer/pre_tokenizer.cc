#include "engine/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <cstdint>

#include "engine/base/utf8.h"
#include "engine/tokenizer/bpe/byte_level.h"
#include "engine/tokenizer/buffer.h"
#include "engine/tokenizer/unicode/unicode_rules.h"

namespace encoderd {
namespace {

using Words = PreTokenizer::Words;

// Where a step may put the words that it makes.
struct Room {
  NormalText* text;
  std::vector<TextRange>* words;
};

void CutByteLevel(const ByteLevelSplit& step, const NormalText& text,
                  absl::Span<const TextRange> in, std::vector<TextRange>* out) {
  if (!step.use_regex) {
    out->assign(in.begin(), in.end());
    return;
  }
  for (const TextRange& word : in) {
    byte_level::SplitWords(text.text(), word, out);
  }
}

Words Apply(const ByteLevelSplit& step, const Words& in, const Room& room) {
  if (!step.add_prefix_space) {
    CutByteLevel(step, *in.text, in.words, room.words);
    return {in.text, *room.words};
  }
  room.text->ResetLike(*in.text);
  std::vector<TextRange> prefixed;
  prefixed.reserve(in.words.size());
  int length = 0;
  for (const TextRange& word : in.words) {
    const int32_t begin = room.text->all().end;
    const absl::string_view bytes = in.text->text(word);
    if (bytes[0] != ' ') {
      // The space stands for the same as the first character.
      utf8::Decode(reinterpret_cast<const uint8_t*>(bytes.data()), &length);
      room.text->Append(" ", in.text->Place({word.begin, word.begin + length}));
    }
    room.text->Append(*in.text, word);
    prefixed.push_back({begin, room.text->all().end});
  }
  if (!room.text->exceeded()) {
    CutByteLevel(step, *room.text, prefixed, room.words);
  }
  return {room.text, *room.words};
}

// Calls visit(character, begin, end) for each character of a word.
template <typename Visit>
void ForEach(const NormalText& text, TextRange word, const Visit& visit) {
  utf8::ForEach(text.text(), word.begin, word.end, visit);
}

Words Apply(const BertSplit&, const Words& in, const Room& room) {
  for (const TextRange& word : in.words) {
    int32_t first = word.begin;
    ForEach(*in.text, word, [&](char32_t c, int32_t at, int32_t end) {
      const bool space = unicode::IsSpace(c);
      if (!space && !unicode::IsPunctuation(c)) return;
      if (first < at) room.words->push_back({first, at});
      if (!space) room.words->push_back({at, end});
      first = end;
    });
    if (first < word.end) room.words->push_back({first, word.end});
  }
  return {in.text, *room.words};
}

Words Apply(const WhitespaceSplit&, const Words& in, const Room& room) {
  for (const TextRange& word : in.words) {
    int32_t first = word.begin;
    ForEach(*in.text, word, [&](char32_t c, int32_t at, int32_t end) {
      if (!unicode::IsSpace(c)) return;
      if (first < at) room.words->push_back({first, at});
      first = end;
    });
    if (first < word.end) room.words->push_back({first, word.end});
  }
  return {in.text, *room.words};
}

Words Apply(const WordSplit&, const Words& in, const Room& room) {
  enum Kind { kSpace, kWord, kOther };
  for (const TextRange& word : in.words) {
    Kind before = kSpace;
    ForEach(*in.text, word, [&](char32_t c, int32_t at, int32_t end) {
      const Kind kind = unicode::IsWordChar(c) ? kWord
                        : unicode::IsSpace(c)  ? kSpace
                                               : kOther;
      if (kind != kSpace) {
        if (kind == before) {
          room.words->back().end = end;
        } else {
          room.words->push_back({at, end});
        }
      }
      before = kind;
    });
  }
  return {in.text, *room.words};
}

Words Apply(const MetaspaceSplit& step, const Words& in, const Room& room) {
  NormalText& out = *room.text;
  char encoded[4];
  const int32_t mark_bytes = utf8::Encode(step.mark, encoded);
  const absl::string_view mark(encoded, mark_bytes);
  out.ResetLike(*in.text);
  for (const TextRange& word : in.words) {
    const absl::string_view text = in.text->text();
    const int32_t first = out.all().end;
    int32_t begin = first;  // of the word that is being written
    const auto cut = [&] {
      if (step.split && begin < out.all().end) {
        room.words->push_back({begin, out.all().end});
        begin = out.all().end;
      }
    };
    const auto has_mark = [&](int32_t at) {
      return text[at] == mark[0] &&
             text.substr(at, std::min(mark_bytes, word.end - at)) == mark;
    };
    int length = 0;
    utf8::Decode(reinterpret_cast<const uint8_t*>(text.data()) + word.begin,
                 &length);
    const bool prepends = step.prepend == MetaspaceSplit::kAlways ||
                          (step.prepend == MetaspaceSplit::kFirst &&
                           word.begin < in.text->start_bytes());
    if (prepends && text[word.begin] != ' ' && !has_mark(word.begin)) {
      out.Append(mark, in.text->Place({word.begin, word.begin + length}));
    }
    int32_t copied = word.begin;
    for (int32_t at = word.begin; at < word.end;) {
      const bool space = text[at] == ' ';
      if (!space && !has_mark(at)) {
        ++at;
        continue;
      }
      if (copied < at) out.Append(*in.text, {copied, at});
      cut();
      const int32_t next = space ? at + 1 : at + mark_bytes;
      out.Append(mark, in.text->Place({at, next}));
      at = copied = next;
    }
    if (copied < word.end) out.Append(*in.text, {copied, word.end});
    room.words->push_back({begin, out.all().end});
  }
  return {&out, *room.words};
}

}  // namespace

void PreTokenizer::Scratch::Shrink() {
  for (NormalText& text : texts) text.Shrink();
  for (std::vector<TextRange>& words : ranges) ShrinkBuffer(&words);
}

Words PreTokenizer::Split(const NormalText& text, TextRange part,
                          Scratch* scratch) const {
  scratch->ranges[1].clear();
  if (part.begin < part.end) scratch->ranges[1].push_back(part);
  Words words{&text, scratch->ranges[1]};
  int turn = 0;
  for (const PreTokenizerStep& step : steps_) {
    // A step writes where the words that it reads do not lie.
    const int own = words.text == &scratch->texts[0] ? 1 : 0;
    const Room room{&scratch->texts[own], &scratch->ranges[turn]};
    room.words->clear();
    words = std::visit(
        [&](const auto& kind) { return Apply(kind, words, room); }, step);
    if (words.text->exceeded()) break;
    turn = 1 - turn;
  }
  return words;
}

}  // namespace encoderd
