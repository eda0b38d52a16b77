#include "client/cpp/encoderctl/commands.h"

namespace encoderd::ctl {
namespace {

constexpr Command kCommands[] = {
    {"embed", "[TEXT...]", "one vector for each text",
     "Texts come from the arguments, from --input, or from the lines of "
     "standard input. Into an .npy they are sent in bulk; with --input=FILE, "
     "repeat the command to resume an interrupted run.",
     "encoderctl embed \"Hello, world\" --format=jsonl\n"
     "encoderctl embed --input=texts.txt --output=vectors.npy\n"
     "encoderctl embed --input=table.csv --field=body --output=vectors.npy\n"
     "encoderctl embed -- \"- a text that begins with a dash\"",
     RunEmbed},
    {"encode", "[TEXT...]", "the states of every token of each text",
     "An .npy holds the rows of all texts end to end, without the number of "
     "rows per text; JSON lines have that number as \"rows\".",
     "encoderctl encode \"Hello, world\" --format=jsonl\n"
     "encoderctl encode --layer=0 --input=texts.txt --output=states.npy",
     RunEncode},
    {"tokenize", "[TEXT...]", "tokens, ids and byte offsets of each text",
     "Computes no vectors, and accepts texts that are too long for embed. "
     "--format=jsonl has ids and offsets, and \"fits\": true if the text "
     "without a prompt is short enough for embed.",
     "encoderctl tokenize \"Hello, world\"\n"
     "encoderctl tokenize --format=jsonl --input=texts.txt",
     RunTokenize},
    {"similarity", "TEXT TEXT...", "the cosine of every pair of texts",
     "Takes at least two texts, from the arguments, from --input, or from the "
     "lines of standard input.",
     "encoderctl similarity \"A man is eating food.\" \"Someone has a meal.\"\n"
     "encoderctl similarity --input=texts.txt --format=jsonl",
     RunSimilarity},
    {"models", "[NAME]", "what the server serves: sizes, limits, prompts",
     "Without a name, lists all models, the default one first.",
     "encoderctl models\n"
     "encoderctl models --format=jsonl --target=server.example:8400",
     RunModels},
    {"inspect", "",
     "what the position table looks like, and whether it is trained",
     "Prints norms, mean cosines of rows 1, 2, 4, ... apart, and a verdict; "
     "--png draws the table and the cosines of its rows.",
     "encoderctl inspect\n"
     "encoderctl inspect --png=positions.png --json=positions.json",
     RunInspect},
    {"bench", "[TEXT...]", "how many texts per second the server answers",
     "Keeps --concurrency calls in flight (a closed loop), with texts "
     "from the arguments, from --input, or made up of --words words. Counts "
     "the calls that end between the warm-up and --duration or --count, and "
     "cancels those in flight at the end. Ctrl-C ends the run and prints what "
     "was measured so far. Calls are not retried: a failed call is followed by "
     "a pause, and a call that the server rejects as invalid ends the run. "
     "With --rate, calls begin at random times, however many are in flight (an "
     "open loop), and a failure causes no pause.",
     "encoderctl bench --words=16 --batch_size=4 --concurrency=4\n"
     "encoderctl bench --stream --words=32 --duration=1m --format=jsonl\n"
     "encoderctl bench --rate=200 --input=texts.txt",
     RunBench},
    {"health", "[SERVICE]", "whether the server is ready (exit code 0) or not",
     "Without a service, asks about the server as a whole. Asks only once; a "
     "server that is still loading its model is NOT_SERVING.",
     "encoderctl health\n"
     "encoderctl health --target=server.example:8400 --timeout=2s",
     RunHealth},
    {"completion", "bash", "a script that completes commands and flags",
     "Prints a script for bash; zsh reads it after `autoload bashcompinit && "
     "bashcompinit`.",
     "source <(encoderctl completion bash)\n"
     "encoderctl completion bash \\\n"
     "  > ~/.local/share/bash-completion/completions/encoderctl",
     RunCompletion},
};

}  // namespace

absl::Span<const Command> Commands() { return kCommands; }

}  // namespace encoderd::ctl
