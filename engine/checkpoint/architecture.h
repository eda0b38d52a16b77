// What differs between encoder architectures: their keys in config.json, their
// tensors and the shape of their layers. architectures.json holds it, one entry
// for each model_type; to add an architecture whose ops exist, add an entry.
//
// An entry may have
//   like             another entry, of which this one names the differences; a
//                    member that is null is not taken over
//   keys, defaults   of each setting: its key in config.json, and its value
//                    where config.json has none ("4H": a size). Without either
//                    it is 0
//   only             keys of config.json that change digits, and the one value
//                    of each that is served
//   form             pre_norm, gated (ModelSizes), causal: attention sees what
//                    came before; segments_of_tokens: transformers adds rows of
//                    the token table for segment ids, which is not computed
//   layer, tensors   rows [role, name, shape, flags...] (tensor_table.h); a
//                    name that begins with a dot follows `layer`. Flags: bias,
//                    transposed, not first, or the key of config.json that says
//                    whether there is a bias
//   ignored          buffers that some versions save with the tensors; named
//                    in the same way
//   padding_row      PaddingRow
//   positions        the only scheme (positions.h); without it,
//                    position_embedding_type of config.json says which
//   positions_called what position_embedding_type may call that scheme, besides
//                    absolute
//   always_projects  the projection is there even where it changes no width
#ifndef ENCODERD_ENGINE_CHECKPOINT_ARCHITECTURE_H_
#define ENCODERD_ENGINE_CHECKPOINT_ARCHITECTURE_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "engine/checkpoint/positions.h"
#include "engine/checkpoint/tensor_table.h"
#include "engine/io/json.h"

namespace encoderd {

// The padding token of the position table: its row is the row of its id, and
// positions of tokens start one row after it.
enum class PaddingRow {
  kNone,        // positions start at row 0
  kOne,         // "one": token 1, whatever config.json says
  kPadTokenId,  // "pad_token_id" of config.json, 1 when it does not say
};

struct Architecture {
  std::string model_type;                   // as in config.json
  std::map<std::string, std::string> keys;  // of config.json, by setting
  Json defaults;                            // by setting
  Json only;                                // by key of config.json
  TensorTable tensors;
  PaddingRow padding_row = PaddingRow::kNone;
  const PositionScheme* position_scheme = nullptr;  // null: config.json says
  std::string positions_called;
  bool always_projects = false;
  bool pre_norm = false;
  bool gated = false;
  bool causal = false;
  bool segments_of_tokens = false;
};

// nullptr for an architecture that is not supported. Ends the program where
// architectures.json itself is wrong.
const Architecture* FindArchitecture(absl::string_view model_type);
// "albert, bert, ..."
std::string SupportedArchitectures();

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_ARCHITECTURE_H_
