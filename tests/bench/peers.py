"""The engines that encoderd is compared with, each on the same ids.

Every engine has one class: prepare(batches) takes the padded batches and
returns a function that runs them all once and returns the vectors in order;
variants() lists the ways it may be set up, of which the benchmark takes the
fastest. Imports are inside the classes: what is not installed is left out.
"""

import concurrent.futures
import os
import tempfile

import numpy as np


def torch_model(folder, dtype="float32", pooling="mean"):
    import torch
    import transformers

    class Embedder(torch.nn.Module):
        """Pooled and normalized, as sentence-transformers does it."""

        def __init__(self):
            super().__init__()
            self.encoder = transformers.AutoModel.from_pretrained(
                folder, dtype=getattr(torch, dtype))
            if hasattr(self.encoder, "pooler"):
                self.encoder.pooler = None

        def forward(self, input_ids, attention_mask):
            states = self.encoder(input_ids=input_ids,
                                  attention_mask=attention_mask)[0]
            states = states.to(torch.promote_types(states.dtype,
                                                   torch.float32))
            if pooling == "cls":
                pooled = states[:, 0]
            else:
                mask = attention_mask.unsqueeze(-1).to(states.dtype)
                pooled = (states * mask).sum(1) / mask.sum(1)
            return torch.nn.functional.normalize(pooled, dim=1)

    return Embedder().eval()


def torch_vectors(folder, ids, dtype="float32", pooling="mean"):
    """Its vectors in fp64; one sequence at a time, so that nothing is padded."""
    import torch
    model = torch_model(folder, dtype, pooling)
    with torch.inference_mode():
        return np.concatenate([
            np.asarray(model(torch.tensor([row]),
                             torch.ones(1, len(row), dtype=torch.int64)),
                       np.float64) for row in ids])


def _example():
    """Two sequences to trace a model with: one padded, both longer than any
    window, so that no mask is left out."""
    import torch
    mask = torch.ones(2, 256, dtype=torch.int64)
    mask[1, 200:] = 0
    return torch.ones_like(mask), mask


def _two_threads(run_batch, batches, workers, start=None):
    """Runs batches on `workers` threads; the vectors in order."""
    with concurrent.futures.ThreadPoolExecutor(
            workers, initializer=start) as pool:
        return np.concatenate(list(pool.map(run_batch, batches)))


ALL_CORES, THREAD_A_CORE = "one call on all cores", "one thread a core"


class Torch:
    """PyTorch: one call on all cores, or one thread a core; attention by its
    own operator or spelled out."""

    def __init__(self, folder, dtype, cores, pooling):
        self.name = f"torch {dtype}"
        self.dtype = dtype
        self.cores = cores
        self.model = torch_model(
            folder, "bfloat16" if dtype == "bf16" else "float32", pooling)

    @staticmethod
    def version():
        import torch
        return torch.__version__

    def variants(self):
        return [f"{attention}, {calls}" for attention in ("sdpa", "eager")
                for calls in (ALL_CORES, THREAD_A_CORE)]

    def prepare(self, batches, variant):
        import torch
        attention, calls = variant.split(", ")
        inputs = [(torch.from_numpy(ids), torch.from_numpy(mask))
                  for ids, mask in batches]

        def run_batch(batch):
            with torch.inference_mode():
                return self.model(*batch).numpy()

        def run():
            self.model.encoder.set_attn_implementation(attention)
            if calls == THREAD_A_CORE:
                return _two_threads(run_batch, inputs, self.cores,
                                    lambda: torch.set_num_threads(1))
            torch.set_num_threads(self.cores)
            return np.concatenate([run_batch(b) for b in inputs])
        return run


class OpenVino:
    """OpenVINO with either hint and its asynchronous queue."""

    def __init__(self, folder, dtype, cores, pooling):
        import openvino as ov
        self.name = f"OpenVINO {dtype}"
        model = ov.convert_model(torch_model(folder, pooling=pooling),
                                 example_input=_example())
        precision = "bf16" if dtype == "bf16" else "f32"
        self.compiled = {
            hint: ov.Core().compile_model(model, "CPU", {
                "PERFORMANCE_HINT": hint,
                "INFERENCE_PRECISION_HINT": precision,
                "INFERENCE_NUM_THREADS": cores,
                "ENABLE_HYPER_THREADING": True})
            for hint in ("THROUGHPUT", "LATENCY")}

    @staticmethod
    def version():
        import openvino
        return openvino.__version__.split("-")[0]

    def variants(self):
        return list(self.compiled)

    def prepare(self, batches, variant):
        import openvino as ov

        def run():
            vectors = [None] * len(batches)

            def take(request, index):
                vectors[index] = request.get_output_tensor().data.copy()

            queue = ov.AsyncInferQueue(self.compiled[variant])
            queue.set_callback(take)
            for index, (ids, mask) in enumerate(batches):
                queue.start_async([ids, mask], userdata=index)
            queue.wait_all()
            return np.concatenate(vectors)
        return run


class OnnxRuntime:
    """ONNX Runtime, exported from PyTorch and fused by its own optimizer."""

    def __init__(self, folder, dtype, cores, pooling):
        import torch
        import transformers
        from onnxruntime.transformers import optimizer
        self.name = f"ONNX Runtime {dtype}"
        self.cores = cores
        config = transformers.AutoConfig.from_pretrained(folder)
        with tempfile.TemporaryDirectory() as scratch:
            plain = os.path.join(scratch, "model.onnx")
            fused = os.path.join(scratch, "fused.onnx")
            axes = {0: "batch", 1: "tokens"}
            model = torch_model(folder, pooling=pooling)
            model.encoder.set_attn_implementation("eager")
            torch.onnx.export(
                model, _example(), plain, dynamo=False, opset_version=17,
                input_names=["input_ids", "attention_mask"],
                output_names=["vectors"],
                dynamic_axes={"input_ids": axes, "attention_mask": axes,
                              "vectors": {0: "batch"}})
            optimized = optimizer.optimize_model(
                plain, model_type="bert",
                num_heads=config.num_attention_heads,
                hidden_size=config.hidden_size)
            self.fusions = optimized.get_fused_operator_statistics()
            optimized.save_model_to_file(fused)

            with open(fused, "rb") as file:
                self.model = file.read()
        self.sessions = {}

    def session(self, threads, arena=True):
        """Made when it is asked for; arena: it keeps what the longest batch
        took, which for 8192 tokens are gigabytes of scores."""
        import onnxruntime
        if (threads, arena) not in self.sessions:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            options.enable_cpu_mem_arena = arena
            self.sessions[threads, arena] = onnxruntime.InferenceSession(
                self.model, options, providers=["CPUExecutionProvider"])
        return self.sessions[threads, arena]

    @staticmethod
    def version():
        import onnxruntime
        return onnxruntime.__version__

    def variants(self):
        return [ALL_CORES, THREAD_A_CORE]

    def prepare(self, batches, variant):
        feeds = [{"input_ids": ids, "attention_mask": mask}
                 for ids, mask in batches]
        long = max(ids.shape[1] for ids, _ in batches) > 4096
        session = self.session(self.cores if variant == ALL_CORES else 1,
                               arena=not long)
        if variant == ALL_CORES:
            return lambda: np.concatenate(
                [session.run(None, feed)[0] for feed in feeds])
        return lambda: _two_threads(
            lambda feed: session.run(None, feed)[0], feeds, self.cores)


PEERS = [(OpenVino, "fp32"), (OpenVino, "bf16"), (OnnxRuntime, "fp32"),
         (Torch, "fp32"), (Torch, "bf16")]
