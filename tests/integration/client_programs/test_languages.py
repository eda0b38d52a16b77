"""client/examples in other languages, built and run as the READMEs say."""

import math
import re
import subprocess

import grpc
import numpy as np
import pytest
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc
from examples import CHROOT, ROOT, Example, Scratch, languages
from google.protobuf import any_pb2, descriptor_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from python_service import Service, serve

NIGHTLY = ["go", "rust"]  # in ENCODERD_TEST_CHROOT: packages of Debian 13
PAGE = "client/examples/README.md"
HERE = NIGHTLY if CHROOT else [
    name for name in languages(PAGE, "run") if name not in NIGHTLY]
GENERATED = [name for name in languages("proto/README.md", "generate")
             if (name in NIGHTLY) == bool(CHROOT)]


@pytest.fixture(scope="module", params=HERE)
def example(request):
    program = Example(request.param)
    yield program
    program.close()


def embed(target, texts):
    with grpc.insecure_channel(target) as channel:
        return encoder_pb2_grpc.EncoderStub(channel).Embed(
            encoder_pb2.EmbedRequest(
                inputs=[encoder_pb2.Input(text=text) for text in texts]),
            timeout=60).embeddings


def described(error):
    """An error of gRPC as the examples print it."""
    details = status_pb2.Status.FromString(
        dict(error.trailing_metadata()).get("grpc-status-details-bin", b""))
    lines = [f"{error.code().name}: {error.details()}"]
    for detail in details.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            lines.append(f"reason {info.reason}")
            lines += [f"{key} {info.metadata[key]}"
                      for key in sorted(info.metadata)]
    return lines


def shown():
    """The output that the page shows, by lines."""
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    return page.split("```text\n")[1].split("```")[0].splitlines()


def test_two_texts_are_compared_and_a_long_one_is_explained(example, server):
    found = embed(server, ["A man eats.", "Someone has a meal."])
    a, b = (np.float64(e.floats.values) for e in found)
    with pytest.raises(grpc.RpcError) as refused:
        embed(server, ["word " * 1000])
    expected = described(refused.value)
    assert expected[1:] == ["reason INPUT_TOO_LONG", "input_index 0",
                            "max_tokens 256", "token_count 1002"]
    done = example.run(server)
    assert done.returncode == 0, done.stdout + done.stderr
    cosine, *error = done.stdout.splitlines()
    assert re.fullmatch(r"cosine 0\.\d{4}", cosine)
    # Half of the last digit shown, and what sums in another order differ by.
    assert math.isclose(float(cosine.split()[1]),
                        a @ b / math.sqrt((a @ a) * (b @ b)), abs_tol=5.1e-5)
    assert error == expected + ["retry delay none"]
    of_page, *error_of_page = shown()
    # CPUs of another kind may round the last digit otherwise.
    assert math.isclose(float(cosine.split()[1]), float(of_page.split()[1]),
                        abs_tol=1.5e-4)
    assert error == error_of_page


class Full(Service):
    """A queue without room for now, said beyond ASCII."""

    def Embed(self, request, context):
        status = status_pb2.Status(
            code=grpc.StatusCode.RESOURCE_EXHAUSTED.value[0],
            message="full: 7 € wait, 100 %")
        for detail in (
                error_details_pb2.ErrorInfo(
                    reason="QUEUE_FULL", domain="encoderd",
                    metadata={"limit": "9", "queued_tokens": "7"}),
                error_details_pb2.RetryInfo(
                    retry_delay=duration_pb2.Duration(
                        seconds=1, nanos=250_000_000))):
            packed = any_pb2.Any()
            packed.Pack(detail)
            status.details.append(packed)
        context.set_trailing_metadata(
            [("grpc-status-details-bin", status.SerializeToString())])
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, status.message)


def test_a_full_queue_names_the_pause(example):
    with serve(Full()) as service:
        done = example.run(service.target)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "RESOURCE_EXHAUSTED: full: 7 € wait, 100 %", "reason QUEUE_FULL",
        "limit 9", "queued_tokens 7", "retry delay 1.250 s"]


def test_a_server_that_is_away_is_unavailable(example, gone):
    done = example.run(gone)
    assert done.returncode == 1, done.stdout + done.stderr
    said, delay = done.stdout.splitlines()
    assert said.startswith("UNAVAILABLE: ")
    assert delay == "retry delay none"


class Large(Service):
    """Answers of 5 MiB, more than gRPC's clients take unless told so."""

    def Embed(self, request, context):
        answer = encoder_pb2.EmbedResponse(model="m" * (5 << 20))
        for _ in request.inputs:
            values = [3.0, 4.0]
            if request.options.packed:
                answer.embeddings.add(
                    packed=np.array(values, "<f4").tobytes())
            else:
                answer.embeddings.add(
                    floats=encoder_pb2.FloatVector(values=values))
        return answer


def test_an_answer_may_be_larger_than_grpc_takes_by_itself(example):
    with serve(Large()) as service:
        done = example.run(service.target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "cosine 1.0000\n"


@pytest.mark.skipif(CHROOT is not None, reason="Python alone")
def test_token_states_need_the_limit_that_proto_readme_names(server):
    request = encoder_pb2.EncodeRequest(
        inputs=[encoder_pb2.Input(text="word " * 250)] * 12)
    with grpc.insecure_channel(server) as channel:
        with pytest.raises(grpc.RpcError) as refused:
            encoder_pb2_grpc.EncoderStub(channel).Encode(request, timeout=120)
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "larger than max" in refused.value.details()
    with grpc.insecure_channel(
            server, [("grpc.max_receive_message_length", 16 << 20)]) as channel:
        answer = encoder_pb2_grpc.EncoderStub(channel).Encode(
            request, timeout=120)
    assert [state.rows for state in answer.states] == [252] * 12


@pytest.mark.parametrize("language", GENERATED)
def test_the_command_of_proto_readme_generates(language):
    scratch = Scratch()
    try:
        scratch.generate(language)
        generated = [path for path in (scratch.folder / "gen").rglob("*")
                     if path.is_file() and path.suffix != ".proto"]
        assert generated
    finally:
        scratch.close()


def described_files(folder, out):
    """The descriptors of a folder's contract, as protoc reads it."""
    subprocess.run(
        ["protoc", f"-I{folder}", f"--descriptor_set_out={out}",
         "encoderd/v1/encoder.proto", "google/rpc/error_details.proto"],
        check=True)
    found = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    optional = []
    for message in [m for file in found for m in file.message_type]:
        for part in [message, *message.nested_type]:
            for field in part.field:
                if field.proto3_optional:
                    optional.append(field.name)
                    field.ClearField("proto3_optional")
    return str(found), sorted(optional)


@pytest.mark.skipif("c" not in GENERATED, reason="C is not nightly")
def test_c_reads_the_same_contract_without_the_word_optional(tmp_path):
    scratch = Scratch()
    try:
        scratch.generate("c")
        files, optional = described_files(ROOT / "proto", tmp_path / "ours")
        assert optional == ["future_quota_value", "layer", "normalize"]
        assert described_files(scratch.folder / "gen/c/proto",
                               tmp_path / "c") == (files, [])
    finally:
        scratch.close()


@pytest.mark.skipif(CHROOT is not None, reason="of the page, not of Debian")
def test_the_table_of_languages_counts_right():
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    table = page.split("<!-- table: languages -->")[1].split("\n\n")[0]
    rows = re.findall(r"^\| (\w+) \| `(\S+)` \| (\d+) \|", table, re.MULTILINE)
    assert [row[0].lower() for row in rows] == languages(PAGE, "run")
    for _, file, lines in rows:
        text = (ROOT / "client/examples" / file).read_text(encoding="utf-8")
        assert len(text.splitlines()) == int(lines), file
