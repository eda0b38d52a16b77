"""PyTorch's side of the run: references and baselines, as a child.

Obeys the words of engine.py over a file of ids; --kind says what computes:
  reference  transformers in fp64, padded batches: the bits that padding
             changes are far below those of fp32
  sdpa, flash, compile  transformers, sorted by length, padded batches
  sentence   SentenceTransformer.encode as installed, texts in, on the device
  onnx       ONNX Runtime with its CUDA provider
  tokens     no child that obeys: ids of texts, one sequence a line, on stdout
  facts      likewise: versions as one JSON object, null: not installed
Everything is: encoder, mean over the tokens, division by the norm.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import sys
import time

import numpy as np
import torch
import transformers

sys.path.insert(0, __file__.rsplit("/", 2)[0])  # for fp8_error

transformers.logging.set_verbosity_error()
PACKAGES = ("torch", "transformers", "sentence_transformers", "flash_attn",
            "onnxruntime", "triton")
DTYPES = {"fp32": torch.float32, "fp16": torch.float16,
          "bf16": torch.bfloat16, "fp64": torch.float64}


def version_of(package):
    """None where it is not installed; one import may come from a package of
    another name."""
    if importlib.util.find_spec(package) is None:
        return None
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "installed"


def load(folder, dtype, attention):
    """attention: None leaves the choice to transformers."""
    settings = {"attn_implementation": attention} if attention else {}
    model = transformers.AutoModel.from_pretrained(folder, **settings)
    return model.to(DTYPES[dtype]).eval()


def padded(batch):
    """(ids, mask), [sequences, longest] each, on the host."""
    lengths = np.fromiter(map(len, batch), dtype=np.int64)
    mask = np.arange(lengths.max())[None, :] < lengths[:, None]
    ids = np.zeros(mask.shape, dtype=np.int64)
    ids[mask] = np.concatenate([np.asarray(s, np.int64) for s in batch])
    return torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))


def pool(states, mask):
    weights = mask.unsqueeze(-1).to(states.dtype)
    mean = (states * weights).sum(1) / weights.sum(1)
    if mean.dtype != torch.float64:
        mean = mean.float()
    return torch.nn.functional.normalize(mean, dim=1)


def batches_of(sequences, max_tokens):
    """Indices, the longest sequences first; max_tokens counts padding."""
    batch = []
    for index in sorted(range(len(sequences)), reverse=True,
                        key=lambda i: len(sequences[i])):
        if batch and len(sequences[batch[0]]) * (len(batch) + 1) > max_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


class Padded:
    """transformers on a device; compute(ids, mask) gives vectors."""

    def __init__(self, options):
        self.device = options.device
        self.max_tokens = 65536 if self.device.startswith("cuda") else 2048
        exact = options.kind == "reference"
        attention = {"reference": None, "flash": "flash_attention_2"}
        model = load(options.model, "fp64" if exact else options.dtype,
                     attention.get(options.kind, "sdpa"))
        model = model.to(self.device)
        self.model = (torch.compile(model, dynamic=True)
                      if options.kind == "compile" else model)

    def prepare(self, sequences):
        """Sorts, cuts into batches and pads: no part of a timed run."""
        order = list(batches_of(sequences, self.max_tokens))
        self.order = np.concatenate([np.asarray(b) for b in order])
        self.batches = [padded([sequences[i] for i in b]) for b in order]

    def compute(self, ids, mask):
        ids, mask = ids.to(self.device), mask.to(self.device)
        return pool(self.model(input_ids=ids, attention_mask=mask)[0], mask)

    @torch.inference_mode()
    def run(self):
        """Until every vector is on the host; in the ids' order."""
        parts = [self.compute(*batch) for batch in self.batches]
        sorted_vectors = torch.cat([part.cpu() for part in parts]).numpy()
        vectors = np.empty_like(sorted_vectors)
        vectors[self.order] = sorted_vectors
        return vectors


class Onnx(Padded):
    """The exported model, padded batches as above."""

    def __init__(self, options):
        import onnxruntime
        if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
            raise SystemExit("onnxruntime has no CUDAExecutionProvider")
        self.max_tokens = 65536
        path = options.scratch + "/model.onnx"
        half = options.dtype == "fp16"
        model = transformers.AutoModel.from_pretrained(
            options.model, attn_implementation="eager").eval()
        model = model.half().cuda() if half else model
        ones = torch.ones(2, 8, dtype=torch.int64, device=model.device)
        example = (ones, ones)
        axes = {0: "batch", 1: "tokens"}
        torch.onnx.export(
            model, example, path, dynamo=False, opset_version=17,
            input_names=["input_ids", "attention_mask"],
            output_names=["states"], dynamic_axes={
                "input_ids": axes, "attention_mask": axes, "states": axes})
        del model
        self.session = onnxruntime.InferenceSession(
            path, providers=["CUDAExecutionProvider"])

    def compute(self, ids, mask):
        states = self.session.run(["states"], {
            "input_ids": ids.numpy(), "attention_mask": mask.numpy()})[0]
        return pool(torch.from_numpy(states).float(), mask)


class Sentence:
    """encode() as installed, with its own batches; the random models' words
    are one id each."""

    def __init__(self, options):
        import sentence_transformers
        from sentence_transformers import SentenceTransformer, models
        settings = {"dtype": DTYPES[options.dtype]}
        try:
            import flash_attn  # noqa: F401
            settings["attn_implementation"] = "flash_attention_2"
        except ImportError:
            settings["attn_implementation"] = "sdpa"
        words = models.Transformer(options.model, model_kwargs=settings)
        width = transformers.AutoConfig.from_pretrained(
            options.model).hidden_size
        self.model = SentenceTransformer(
            modules=[words, models.Pooling(width), models.Normalize()],
            device=options.device)
        print(f"sentence-transformers {sentence_transformers.__version__}, "
              f"{settings['attn_implementation']}", file=sys.stderr)

    def prepare(self, sequences):
        self.texts = [" ".join(f"w{i - 5}" for i in sequence[1:-1])
                      for sequence in sequences]

    def run(self):
        return self.model.encode(self.texts, batch_size=256,
                                 show_progress_bar=False)


def read_ids(path):
    with open(path, encoding="ascii") as file:
        return [list(map(int, line.split())) for line in file]


def obey(computer, first):
    """What engine_bench does with the same words."""
    def feed(path):
        computer.prepare(read_ids(path))
        return computer.run()  # warms up

    vectors = feed(first)
    print("ready", flush=True)
    for line in sys.stdin:
        word, _, path = line.strip().partition(" ")
        if word == "ids":
            vectors = feed(path)
            print("ready", flush=True)
        elif word == "run":
            start = time.perf_counter()
            vectors = computer.run()
            print(time.perf_counter() - start, flush=True)
        elif word == "vectors":
            vectors.astype("<f4").tofile(path)
            print("written", flush=True)
        else:
            raise SystemExit(f"unknown word {word}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", required=True)
    parser.add_argument("--model")
    parser.add_argument("--dtype", default="fp32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--ids")
    parser.add_argument("--scratch", default="/tmp")
    parser.add_argument("--texts", type=int, default=1000)
    options = parser.parse_args()
    if options.kind == "facts":
        print(json.dumps({name: version_of(name) for name in PACKAGES}))
    elif options.kind == "tokens":
        import fp8_error
        for ids in fp8_error.ids_of(options.model, fp8_error.texts_of(
                options.texts, 1)):
            print(" ".join(map(str, ids)))
    else:
        kinds = {"onnx": Onnx, "sentence": Sentence}
        obey(kinds.get(options.kind, Padded)(options), options.ids)


if __name__ == "__main__":
    main()
