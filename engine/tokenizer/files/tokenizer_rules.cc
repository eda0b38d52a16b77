// RulesText: what a fingerprint needs to know of a tokenizer.
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/tokenizer/files/tokenizer_spec.h"

namespace encoderd {
namespace {

// Appends values, each of a form that ends where it says. One overload for
// each kind of step and model, so that a new one does not compile without.
class Writer {
 public:
  explicit Writer(std::string* out) : out_(*out) {}

  void operator()(const BertNormalizerOptions& step) {
    Put("bert", step.clean_text, step.handle_chinese_chars, step.strip_accents,
        step.lowercase);
  }
  void operator()(const CharsMap& step) {
    Put("chars map");
    Text(step.bytes());
  }
  void operator()(const UnicodeFormStep& step) {
    Put("form", static_cast<int>(step.form));
  }
  void operator()(const LowercaseStep&) { Put("lowercase"); }
  void operator()(const StripAccentsStep&) { Put("strip accents"); }
  void operator()(const StripStep& step) {
    Put("strip", step.left, step.right);
  }
  void operator()(const PrependStep& step) {
    Put("prepend");
    Text(step.text);
  }
  void operator()(const ReplaceStep& step) {
    Put("replace", step.min_run);
    Text(step.pattern);
    Text(step.content);
  }

  void operator()(const ByteLevelSplit& step) {
    Put("byte level", step.add_prefix_space, step.use_regex);
  }
  void operator()(const BertSplit&) { Put("bert split"); }
  void operator()(const WhitespaceSplit&) { Put("white space split"); }
  void operator()(const WordSplit&) { Put("word split"); }
  void operator()(const MetaspaceSplit& step) {
    Put("metaspace", static_cast<int64_t>(step.mark),
        static_cast<int>(step.prepend), step.split);
  }

  void operator()(const WordPieceOptions& model) {
    Put("word piece", model.max_word_chars);
    Text(model.unk_token);
    Text(model.continuing_prefix);
  }
  void operator()(const BytePairOptions& model) {
    Put("byte pair", model.fuse_unk, model.ignore_merges,
        model.unk_token.has_value());
    Text(model.unk_token.value_or(""));
    for (const BytePairOptions::Merge& merge : model.merges)
      Put("merge", merge.left, merge.right, merge.result);
  }
  void operator()(const UnigramOptions& model) {
    Put("unigram", model.unk_id, model.byte_fallback);
    // Every bit of them.
    Text({reinterpret_cast<const char*>(model.scores.data()),
          model.scores.size() * sizeof(double)});
  }
  void operator()(const AddedToken& token) {
    Put("added", token.id, token.single_word, token.lstrip, token.rstrip,
        token.normalized, token.special);
    Text(token.content);
  }

 private:
  template <typename... Values>
  void Put(absl::string_view name, Values... values) {
    absl::StrAppend(&out_, name);
    (absl::StrAppend(&out_, " ", values), ...);
    out_ += '\n';
  }
  void Text(absl::string_view text) {
    absl::StrAppend(&out_, text.size(), " ", text, "\n");
  }

  std::string& out_;
};

}  // namespace

std::string RulesText(const TokenizerSpec& spec) {
  std::string text;
  Writer writer(&text);
  for (const NormalizerStep& step : spec.normalizer) std::visit(writer, step);
  for (const PreTokenizerStep& step : spec.pre_tokenizer)
    std::visit(writer, step);
  std::visit(writer, spec.model);
  for (const AddedToken& token : spec.added_tokens) writer(token);
  return text;
}

}  // namespace encoderd
