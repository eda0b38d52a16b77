#include "engine/fingerprint.h"

#include <limits>

#include "absl/strings/charconv.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/io/sha256.h"

namespace encoderd {
namespace {

constexpr size_t kDigits = 16;

// Case, accents, spaces, numbers, controls, special tokens by name, a word too
// long, and scripts that tokenizers treat in their own ways: what one of them
// does differently shows in the ids.
constexpr char kProbe[] =
    "The Café's 1,234.5 tokens: naïve_CamelCase, don't e-mail!  \t\n"
    "Привет 日本語の文章 한국어 हिन्दी العربية ไทย ΆΣΟΣ ﬁ ½ "
    "👩‍💻 "
    "http://a.b/c?d=1 a\x01z a\u200bz a\ufffdz [CLS][SEP] [UNK] [PAD] [MASK] "
    "<s> </s> <unk> <pad> <mask> <|endoftext|> "
    "abababababababababababababababababababababababababababababababababab"
    "ababababababababababababababababababababababababababababababababababab";

// Length-prefixed, so that different lists never give equal text.
std::string Line(absl::string_view name, absl::string_view value) {
  return absl::StrCat(name, " ", value.size(), " ", value, "\n");
}

// Six digits, or as many as it takes to tell the value from its neighbors.
template <typename F>
std::string Exactly(F value) {
  const std::string text = absl::StrCat(value);
  F read = 0;
  absl::from_chars(text.data(), text.data() + text.size(), read);
  if (read == value) return text;
  return absl::StrFormat("%.*g", std::numeric_limits<F>::max_digits10, value);
}

}  // namespace

absl::StatusOr<std::string> Fingerprint(const ModelInfo& info,
                                        const Tokenizer& tokenizer) {
  const ModelConfig& config = info.config;
  Encoding probe;
  const TokenizerScratchPtr scratch = tokenizer.NewScratch();
  const absl::Status status =
      tokenizer.Encode(kProbe, {}, scratch.get(), &probe);
  if (absl::IsInvalidArgument(status)) {  // a normalizer that grows it
    return absl::DataLossError(
        absl::StrCat("the tokenizer rejects a short text: ", status.message()));
  }
  if (!status.ok()) return status;
  std::string words;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    absl::StrAppend(&words, Line(tokenizer.is_special(id) ? "special" : "token",
                                 tokenizer.Token(id)));
  }
  const absl::StatusOr<std::string> vocabulary = Sha256OfString(words);
  if (!vocabulary.ok()) return vocabulary;
  std::string text = absl::StrCat(
      Line("weights", info.weights_sha256), Line("products", info.dtype),
      Line("architecture", config.model_type), "activation ",
      static_cast<int>(config.hidden_act), "\nepsilon ",
      Exactly(config.layer_norm_eps), "\npositions ", config.position_offset,
      " ", config.position_scheme->name(), "\npooling ",
      static_cast<int>(config.pooling), " ", config.normalize, " ",
      config.dimensions(), "\nmax_len ", info.limits.max_len, "\ntokens ",
      absl::StrJoin(probe.token_ids, " "), "\n", Line("words", *vocabulary),
      Line("rules", tokenizer.rules_sha256()), "heads ",
      config.num_attention_heads, "\n",
      Line("default_prompt", config.default_prompt_name));
  Encoding pair;
  const absl::Status paired =
      tokenizer.EncodePair("a", "b, b", {}, scratch.get(), &pair);
  if (!paired.ok()) return paired;
  absl::StrAppend(&text, "pair ", absl::StrJoin(pair.token_ids, " "), "\n");
  if (config.type_vocab_size > 1) {
    absl::StrAppend(&text, "segments ", absl::StrJoin(probe.segment_ids, " "),
                    " and ", absl::StrJoin(pair.segment_ids, " "), "\n");
  }
  for (const LayerSpec& layer : config.layers) {
    absl::StrAppend(&text, "layer ", layer.rotation, " ", layer.reach.left, " ",
                    layer.reach.right, "\n");
  }
  for (const Rotation& rotation : config.rotations) {
    absl::StrAppend(&text, "rotation ", Exactly(rotation.theta), " ",
                    rotation.dims, "\n");
  }
  for (const HeadModule& module : config.head) {
    absl::StrAppend(&text, "head ", static_cast<int>(module.kind), " ",
                    module.tanh, "\n");
  }
  for (const auto& [name, prompt] : config.prompts) {
    absl::StrAppend(&text, Line("prompt", name), Line("is", prompt));
  }
  absl::StatusOr<std::string> digest = Sha256OfString(text);
  if (digest.ok()) digest->resize(kDigits);
  return digest;
}

}  // namespace encoderd
