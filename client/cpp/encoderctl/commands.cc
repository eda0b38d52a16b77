#include "client/cpp/encoderctl/commands.h"

namespace encoderd::ctl {
namespace {

constexpr Command kCommands[] = {
    {"embed", "[TEXT...]", "one vector for each text",
     "Texts are the arguments, the lines of --input, or the lines of standard "
     "input. Into an .npy they travel in bulk: with --input=FILE, a run that "
     "broke off is gone on with by the same command.",
     RunEmbed},
    {"encode", "[TEXT...]", "the states of every token of each text",
     "An .npy holds the rows of all texts end to end; `encoderctl tokenize` "
     "gives the number of rows of each.",
     RunEncode},
    {"tokenize", "[TEXT...]", "tokens, ids and byte offsets of each text",
     "Nothing is computed and no text is too long. --format=jsonl has ids and "
     "offsets, and \"fits\": whether embed would take it without a prompt.",
     RunTokenize},
    {"similarity", "TEXT TEXT...", "the cosine between every two texts",
     "At least two texts: arguments, the lines of --input, or of standard "
     "input.",
     RunSimilarity},
    {"models", "[NAME]", "what the server serves: sizes, limits, prompts",
     "Without a name: all of them, the default model first.", RunModels},
    {"inspect", "", "what the position table looks like, and if it is trained",
     "Prints norms, mean cosines of rows 1, 2, 4, ... apart, and a verdict; "
     "--png draws the table and the cosines of its rows.",
     RunInspect},
    {"bench", "[TEXT...]", "how many texts a second the server answers",
     "A closed loop over the texts of the arguments, of --input, or of "
     "--words words: --concurrency calls are always under way, each end begins "
     "the next, and those under way at the end are cut off. Counted is what "
     "ends between the warm-up and --duration or --count; Ctrl-C ends it with "
     "what was measured so far. No call is made twice; one that fails is "
     "followed by a pause. With --rate, calls begin at random times whatever "
     "is in flight (an open loop), and a failure causes no pause.",
     RunBench},
    {"health", "[SERVICE]", "whether the server is ready (exit code 0) or not",
     "Without a service: the server as a whole.", RunHealth},
};

}  // namespace

absl::Span<const Command> Commands() { return kCommands; }

}  // namespace encoderd::ctl
