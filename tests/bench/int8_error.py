"""What int8 products cost a model on CPUs, on the host: cosines of pooled
vectors with those of fp32, over a thousand texts.

Weights have a scale per output row, activations one per token. Codes are
multiplied and added as integers, exactly, so that a row's bits depend on itself
alone; the sum is scaled in fp32. What else a choice does:

    only, without    products of PRODUCTS that multiply 8 bits, or do not
    but layers       whole layers whose products do not
    zero point       a token has 256 steps from its least to its largest value,
                     instead of 127 on each side of 0
    smooth           columns are divided by max|x|^a / max|w|^(1-a), weights
                     multiplied by it; max|x| of the calibrating half
    rotate N         blocks of N columns are multiplied by a Hadamard matrix
    keep             that many columns multiply bf16: those that are largest on
                     the calibrating half
    groups           a token has a scale for each group of 128 columns

Everything else is fp32, with --states=bf16 rounded as the engine stores it in
bf16. Texts with even numbers calibrate, odd ones are judged; they share no
sentence. Real prose in 19 languages joins them if Debian's package
installation-guide-amd64 is installed. A model of BERT's or MPNet's layers.
Exit status 1: a judged text is below the limit as the engine computes it.

    python3 tests/bench/int8_error.py --model "$(deploy/fetch-model.sh)"
"""

import argparse
import dataclasses
import functools
import json
import pathlib
import random
import re
import sys

import torch
import transformers

import fp8_error

sys.path.append(str(pathlib.Path(__file__).parents[1] / "integration"))
import tokenizer_corpus  # noqa: E402

PRODUCTS = fp8_error.PRODUCTS
NAMES = {"qkv": r"attention\.(self\.(query|key|value)|attn\.[qkv])",
         "attention_output": r"attention\.(output\.dense|attn\.o)",
         "feed_forward_in": r"intermediate\.dense",
         "feed_forward_out": r"output\.dense"}  # of a layer, BERT's and MPNet's
ENGINE = "rotate 8, zero point"  # what int8_kernel.h computes
LEAST_COSINE = 0.99  # of every text
LEAST = 2.0 ** -100  # a largest value counts as no less
GROUP = 128  # columns
LANES = 16  # of a vector
BATCH = 32  # most texts of one length that are computed together


@dataclasses.dataclass(frozen=True)
class Choice:
    name: str
    products: tuple = PRODUCTS
    but_layers: tuple = ()
    zero_point: tuple = ()  # products
    smooth: float = 0.0  # 0: not
    rotate: int = 0  # columns of a block
    keep: int = 0
    groups: bool = False


def choices(layers):
    out = ("feed_forward_out",)
    return [Choice("none", ()), Choice("all"),
            *(Choice("only " + name, (name,)) for name in PRODUCTS),
            Choice("without feed_forward_out", PRODUCTS[:3]),
            Choice("without qkv", PRODUCTS[1:]),
            Choice("but first layer", but_layers=(0,)),
            Choice("but last layer", but_layers=(layers - 1,)),
            Choice("but both", but_layers=(0, layers - 1)),
            Choice("zero point", zero_point=PRODUCTS),
            Choice("zero point of feed_forward_out", zero_point=out),
            Choice("smooth 0.5", smooth=0.5),
            Choice("smooth 0.75", smooth=0.75),
            Choice("smooth 0.5, zero point", smooth=0.5, zero_point=PRODUCTS),
            Choice("rotate 8", rotate=8),
            Choice("rotate 128", rotate=128),
            Choice("rotate 8, zero point", rotate=8, zero_point=PRODUCTS),
            Choice("keep 16", keep=16),
            Choice("groups", groups=True)]


def bf16(x):
    return x.to(torch.bfloat16).float()


def quantize(x, zero_point):
    """Codes of int8, each row's scale, and its code of 0."""
    if not zero_point:
        largest = x.abs().amax(-1, keepdim=True).clamp_min(LEAST)
        codes = (x * (127 / largest)).round().clamp(-127, 127)
        return codes.to(torch.int8), largest / 127, None
    low = x.amin(-1, keepdim=True).clamp_max(0)
    span = (x.amax(-1, keepdim=True).clamp_min(0) - low).clamp_min(LEAST)
    zero = (low * (-255 / span)).round() - 128
    codes = (x * (255 / span)).round() + zero
    return codes.clamp(-128, 127).to(torch.int8), span / 255, zero.int()


def multiply(codes, weights):
    """Exact sums of integers; weights [out,in]."""
    return torch._int_mm(codes, weights.T)


def check_exact():
    generator = torch.Generator().manual_seed(1)
    for rows, depth, columns in (1, 384, 384), (40, 3072, 768), (257, 128, 64):
        x, w = (torch.randint(-128, 128, (n, depth), generator=generator,
                              dtype=torch.int8) for n in (rows, columns))
        want = x.double() @ w.double().T
        if not torch.equal(multiply(x, w).double(), want):
            raise SystemExit("int8_error.py: integers are not added exactly")


@functools.lru_cache(maxsize=None)
def hadamard(size):
    """Orthogonal, of plus and minus one number."""
    matrix = torch.ones(1, 1)
    while len(matrix) < size:
        matrix = torch.cat([torch.cat([matrix, matrix], 1),
                            torch.cat([matrix, -matrix], 1)])
    return matrix / size ** 0.5


def rotated(x, size):
    """Small blocks take columns of as many vectors, so that a CPU only adds."""
    apart = LANES if size <= LANES else 1
    return (hadamard(size) @ x.unflatten(-1, (-1, size, apart))).flatten(-3)


class Product:
    """What a Linear module becomes. smoother: divides its columns."""

    def __init__(self, linear, product, choice, largest, smoother):
        weight, depth = linear.weight.detach().float(), linear.in_features
        self.bias = linear.bias.detach().float()
        self.smoother = smoother
        if smoother is not None:
            weight = weight * smoother
            largest = largest / smoother
        self.kept = self.kept_weight = None
        if choice.keep:
            self.kept = largest.topk(choice.keep).indices
            self.kept_weight = bf16(weight[:, self.kept])
            weight = weight.clone()
            weight[:, self.kept] = 0
        self.rotate = choice.rotate
        if self.rotate:
            weight = rotated(weight, self.rotate)
        self.zero_point = product in choice.zero_point
        codes, self.scale, _ = quantize(weight, False)
        size = GROUP if choice.groups else depth
        self.parts = [part.contiguous() for part in codes.split(size, 1)]
        self.sums = [part.sum(1, dtype=torch.int32) for part in self.parts]

    def __call__(self, x):
        shape = x.shape[:-1]
        x = x.flatten(0, -2)
        if self.smoother is not None:
            x = x * (1 / self.smoother)
        y = self.bias
        if self.kept is not None:
            y = y + bf16(x[:, self.kept]) @ self.kept_weight.T
            x = x.clone()
            x[:, self.kept] = 0
        if self.rotate:
            x = rotated(x, self.rotate)
        for part, weights, sums in zip(x.split(self.parts[0].shape[1], 1),
                                       self.parts, self.sums):
            codes, scale, zero = quantize(part, self.zero_point)
            total = multiply(codes, weights)
            if zero is not None:
                total -= zero * sums
            y = total.float() * (scale * self.scale.T) + y
        return y.unflatten(0, shape)


class Encoder:
    """A model whose modules compute what a choice says."""

    def __init__(self, model, narrow):
        self.model = model
        self.narrow = narrow
        self.products = {}  # Linear: its product and layer
        for name, module in model.named_modules():
            for product, pattern in NAMES.items():
                match = re.fullmatch(r"encoder\.layer\.(\d+)\." + pattern, name)
                if match:
                    self.products[module] = (product, int(match[1]))
        self.layers = model.config.num_hidden_layers
        if len(self.products) != 6 * self.layers:
            raise SystemExit("int8_error.py: not a model of BERT's layers")

    @torch.inference_mode()
    def vectors(self, sequences):
        """Normalized means; texts of one length together, without padding."""
        by_length = {}
        for i, ids in enumerate(sequences):
            by_length.setdefault(len(ids), []).append(i)
        found = [None] * len(sequences)
        for same in by_length.values():
            for first in range(0, len(same), BATCH):
                rows = same[first:first + BATCH]
                ids = torch.tensor([sequences[i] for i in rows])
                means = self.model(ids).last_hidden_state.mean(1)
                for i, vector in zip(rows, means):
                    found[i] = torch.nn.functional.normalize(vector, dim=0)
        return torch.stack(found)

    def calibrate(self, sequences):
        """Each product's columns: the largest value of any text."""
        largest = {}

        def see(module, inputs):
            top = inputs[0].abs().flatten(0, -2).amax(0)
            largest[module] = torch.maximum(largest.get(module, top), top)

        hooks = [module.register_forward_pre_hook(see)
                 for module in self.products]
        vectors = self.vectors(sequences)
        for hook in hooks:
            hook.remove()
        self.largest = largest
        return vectors

    def _smoothers(self, choice):
        """One for the modules that read the same rows."""
        weights = {}
        for module, key in self.products.items():
            top = module.weight.detach().abs().amax(0)
            weights[key] = torch.maximum(weights.get(key, top), top)
        return {module: (self.largest[module].clamp_min(1e-5) ** choice.smooth /
                         weights[key].clamp_min(1e-5) ** (1 - choice.smooth))
                for module, key in self.products.items()}

    def apply(self, choice):
        smoothers = self._smoothers(choice) if choice.smooth else {}
        for module in self.model.modules():
            if isinstance(module, (torch.nn.Linear, torch.nn.LayerNorm)):
                module.__dict__.pop("forward", None)
                forward = module.forward
                product, layer = self.products.get(module, ("", None))
                if product in choice.products and (
                        layer not in choice.but_layers):
                    forward = Product(module, product, choice,
                                      self.largest[module],
                                      smoothers.get(module))
                elif product and self.narrow:
                    weight = bf16(module.weight.detach())
                    forward = functools.partial(
                        torch.nn.functional.linear, weight=weight,
                        bias=module.bias.detach())
                module.forward = self._stored(forward)

    def _stored(self, forward):
        if not self.narrow:
            return forward
        return lambda x: bf16(forward(bf16(x)))


def texts_of(count, seed):
    """As fp8_error.py's, and paragraphs of the guide as every second pair."""
    texts = fp8_error.texts_of(count, seed)
    if not tokenizer_corpus.GUIDE.is_dir():
        return texts
    prose = sorted({line for lines in tokenizer_corpus.guide_lines().values()
                    for line in lines if 40 <= len(line) <= 1200})
    random.Random(seed).shuffle(prose)
    for pair in range(50, count // 2, 2):  # the sentences alone stay
        texts[2 * pair:2 * pair + 2] = prose.pop(), prose.pop()
    return texts


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--texts", type=int, default=2000, help="both halves")
    parser.add_argument("--seed", type=int, default=1, help="of the texts")
    parser.add_argument("--states", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--both", action="store_true",
                        help="compare the calibrating half, too")
    parser.add_argument("--choices", default="",
                        help="a regular expression of names; empty: all")
    options = parser.parse_args()
    check_exact()
    model = transformers.AutoModel.from_pretrained(options.model).eval()
    encoder = Encoder(model, options.states == "bf16")
    sequences = fp8_error.ids_of(
        options.model, texts_of(options.texts, options.seed))
    halves = {"calibrating": sequences[0::2], "judged": sequences[1::2]}
    print(json.dumps({
        "model": pathlib.Path(options.model).name, "states": options.states,
        **{half: {"texts": len(texts), "tokens": sum(map(len, texts))}
           for half, texts in halves.items()},
        "torch": torch.__version__}), flush=True)
    want = {"calibrating": encoder.calibrate(halves["calibrating"]),
            "judged": encoder.vectors(halves["judged"])}
    passed = True
    for choice in choices(encoder.layers):
        if not re.fullmatch(options.choices or ".*", choice.name):
            continue
        encoder.apply(choice)
        row = {"choice": choice.name}
        for half in (halves if options.both else ["judged"]):
            row[half] = fp8_error.compare(
                encoder.vectors(halves[half]), want[half])
        print(json.dumps(row), flush=True)
        if choice.name == ENGINE:
            passed = row["judged"]["min_cosine"] >= LEAST_COSINE
    raise SystemExit(0 if passed else 1)


if __name__ == "__main__":
    main()
