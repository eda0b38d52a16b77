"""The client where other packages take a model: the real packages, a real
encoderd. `tests/nightly.sh integrations` installs them and runs this; nothing
is loaded from the Hub."""

import asyncio
import copy
import json
import multiprocessing
import os
import subprocess
import sys
import threading

import encoderd
import numpy as np
import pandas
import pytest

os.environ["HF_HUB_OFFLINE"] = "1"

TEXTS = ["A man is eating food.", "A woman plays the violin.",
         "The stock market fell on Monday.", "He repairs old bicycles."]
QUERY = "Somebody has a meal."  # like the first
# Metrics of both come from vectors that agree to 1e-5.
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def client(server):
    with encoderd.Client(server) as client:
        yield client


@pytest.fixture(scope="module")
def model(model_folder):
    from sentence_transformers import SentenceTransformer
    return SentenceTransformer(model_folder, device="cpu")


def binary(ev, model):
    return ev.BinaryClassificationEvaluator(
        TEXTS + TEXTS, TEXTS + TEXTS[::-1], [1] * 4 + [0] * 4)


def similarity(ev, model):
    return ev.EmbeddingSimilarityEvaluator(
        [QUERY] * 4, TEXTS, [1.0, 0.2, 0.1, 0.3])


def retrieval(ev, model):
    return ev.InformationRetrievalEvaluator(
        {"q": QUERY}, {str(i): text for i, text in enumerate(TEXTS)},
        {"q": {"0"}})


def mse(ev, model):
    return ev.MSEEvaluator(TEXTS, TEXTS[::-1], teacher_model=model)


def mse_of_a_table(ev, model):
    from sentence_transformers.sentence_transformer.evaluation import (
        mse_from_dataframe)
    return mse_from_dataframe.MSEEvaluatorFromDataFrame(
        [{"en": text, "de": f"{text} Ja."} for text in TEXTS], model,
        [("en", "de")])


def paraphrases(ev, model):
    return ev.ParaphraseMiningEvaluator(
        {str(i): text for i, text in enumerate([*TEXTS, QUERY])}, [("0", "4")])


def reranking(ev, model):
    return ev.RerankingEvaluator([{
        "query": QUERY, "positive": TEXTS[:1], "negative": TEXTS[1:]}])


def translation(ev, model):
    return ev.TranslationEvaluator(TEXTS, [f"{text} Ja." for text in TEXTS])


def triplets(ev, model):
    return ev.TripletEvaluator([QUERY] * 3, TEXTS[:1] * 3, TEXTS[1:])


def sequence(ev, model):
    return ev.SequentialEvaluator([triplets(ev, model), similarity(ev, model)])


# All but the one that trains (label accuracy) and the one that loads data
# sets from the Hub.
@pytest.mark.parametrize("make", [
    binary, similarity, retrieval, mse, mse_of_a_table, paraphrases, reranking,
    translation, triplets, sequence], ids=lambda make: make.__name__)
def test_an_evaluator_finds_what_it_finds_of_the_model_itself(client, model,
                                                              make):
    from sentence_transformers.sentence_transformer import evaluation as ev
    theirs = make(ev, model)(model)
    ours = make(ev, client)(client)
    assert ours.keys() == theirs.keys() and theirs
    for name, value in theirs.items():
        assert ours[name] == pytest.approx(value, abs=TOLERANCE), name


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan"])
def test_similarity_is_a_tensor_as_theirs(client, model, name):
    import torch
    a, b = client.encode(TEXTS), client.encode(TEXTS[::-1])
    client.similarity_fn_name = model.similarity_fn_name = name
    try:
        for kind in (np.asarray, torch.from_numpy, list):
            for method in ("similarity", "similarity_pairwise"):
                ours = getattr(client, method)(kind(a), kind(b))
                theirs = getattr(model, method)(kind(a), kind(b))
                assert ours.dtype == theirs.dtype
                torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    finally:
        client.similarity_fn_name = model.similarity_fn_name = "cosine"


def test_members_are_those_of_the_model(client, model):
    assert client.get_embedding_dimension() == model.get_embedding_dimension()
    assert client.max_seq_length == model.max_seq_length
    assert client.default_prompt_name == model.default_prompt_name
    assert client.similarity_fn_name == model.similarity_fn_name
    assert client.device == model.device
    for method in ("encode_query", "encode_document"):
        np.testing.assert_allclose(getattr(client, method)(TEXTS),
                                   getattr(model, method)(TEXTS), atol=1e-5)
    ours, theirs = client.tokenize(TEXTS), model.tokenize(TEXTS)
    for name in ("input_ids", "attention_mask"):
        assert ours[name].tolist() == theirs[name].tolist()
        assert ours[name].dtype == theirs[name].dtype


def test_a_table_is_refused_and_its_column_taken(client):
    table = pandas.DataFrame({"id": [1, 2], "text": TEXTS[:2]})
    with pytest.raises(TypeError) as caught:
        client.encode(table)
    assert str(caught.value) == (
        'inputs is a DataFrame; pass one column, such as df["text"] (columns: '
        "id, text)")
    np.testing.assert_array_equal(client.encode(table["text"]),
                                  client.encode(TEXTS[:2]))
    with pytest.raises(TypeError, match=r"inputs\[1\] is nan, a missing value"):
        client.encode(pandas.Series(["one", float("nan")], dtype=object))


def test_torch_is_imported_only_where_tensors_are_given(server):
    subprocess.run(
        [sys.executable, "-c", "import encoderd, sys\n"
         "with encoderd.Client(sys.argv[1]) as client:\n"
         "    client.encode(['one'])\n"
         "assert 'torch' not in sys.modules", server], check=True)


@pytest.fixture
def threads(monkeypatch):
    """Those that clients encode in."""
    found = set()
    for name in ("encode_query", "encode_document"):
        def noted(*arguments, method=getattr(encoderd.Client, name),
                  **options):
            found.add(threading.current_thread())
            return method(*arguments, **options)

        monkeypatch.setattr(encoderd.Client, name, noted)
    return found


def check_awaited(threads, adapter, method, argument):
    """The awaited method gives what the blocking one does, and leaves the
    event loop to others."""
    found = asyncio.run(getattr(adapter, f"a{method}")(argument))
    assert threads and threading.current_thread() not in threads
    np.testing.assert_array_equal(found, getattr(adapter, method)(argument))


@pytest.mark.parametrize("method, argument", [
    ("embed_query", QUERY), ("embed_documents", TEXTS)])
def test_langchain_awaits_another_thread(client, threads, method, argument):
    from encoderd.langchain import EncoderdEmbeddings
    check_awaited(threads, EncoderdEmbeddings(client), method, argument)


@pytest.mark.parametrize("method, argument", [
    ("get_query_embedding", QUERY), ("get_text_embedding", QUERY),
    ("get_text_embedding_batch", TEXTS)])
def test_llama_index_awaits_another_thread(client, threads, method, argument):
    from encoderd.llama_index import EncoderdEmbedding
    check_awaited(threads, EncoderdEmbedding(client), method, argument)


def test_langchain_finds_the_nearest_text(client):
    from encoderd.langchain import EncoderdEmbeddings
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_tests.integration_tests import EmbeddingsIntegrationTests

    class Standard(EmbeddingsIntegrationTests):
        embeddings_class = EncoderdEmbeddings
        embedding_model_params = {}

    embeddings = EncoderdEmbeddings(client, truncate="end")
    store = InMemoryVectorStore.from_texts(TEXTS, embeddings)
    assert store.similarity_search(QUERY, 1)[0].page_content == TEXTS[0]
    tests = [name for name in dir(Standard) if name.startswith("test_embed")]
    assert len(tests) == 2
    for name in tests:  # LangChain's own
        getattr(Standard(), name)(embeddings)


def test_llama_index_finds_the_nearest_text(client):
    from encoderd.llama_index import EncoderdEmbedding
    from llama_index.core import VectorStoreIndex
    from llama_index.core.schema import TextNode
    index = VectorStoreIndex([TextNode(text=text) for text in TEXTS],
                             embed_model=EncoderdEmbedding(client))
    found = index.as_retriever(similarity_top_k=1).retrieve(QUERY)
    assert found[0].text == TEXTS[0]


def test_llama_index_caches_each_model_and_set_of_options_apart(server):
    from encoderd.llama_index import EncoderdEmbedding
    from llama_index.core.ingestion import IngestionCache, IngestionPipeline
    from llama_index.core.schema import TextNode
    cache = IngestionCache()

    def width(**options):
        pipeline = IngestionPipeline(transformations=[EncoderdEmbedding(
            server, **options)], cache=cache)
        (node,) = pipeline.run(nodes=[TextNode(text=QUERY, id_="one")])
        return len(node.embedding)

    assert [width(), width(truncate_dim=8), width()] == [384, 8, 384]
    other = server.replace("127.0.0.1", "localhost")
    ranges = np.array([[0.0] * 2000, [1.0] * 2000])
    changed = ranges.copy()
    changed[0, 1000] = 0.5  # numpy shows the ends of long rows only
    several = [
        EncoderdEmbedding(server, embed_batch_size=7),
        EncoderdEmbedding(other), EncoderdEmbedding(server, model="minilm"),
        EncoderdEmbedding(encoderd.Client(server, model="other")),
        EncoderdEmbedding(server, truncate_dim=8),
        EncoderdEmbedding(server, prompt="ask: "),
        EncoderdEmbedding(server, prompt_name="query"),
        EncoderdEmbedding(server, ranges=ranges),
        EncoderdEmbedding(server, ranges=changed)]
    assert len({str(each.to_dict()) for each in several}) == len(several)
    assert (EncoderdEmbedding(encoderd.Client(server, token="secret")).to_dict()
            == EncoderdEmbedding(server).to_dict())


def test_llama_index_stores_the_adapter_without_its_token(server):
    from encoderd.llama_index import EncoderdEmbedding
    model = EncoderdEmbedding(encoderd.Client(server, token="secret"),
                              embed_batch_size=7, truncate_dim=8)
    assert "secret" not in model.to_json()
    wanted = model.get_query_embedding(QUERY)
    assert len(wanted) == 8
    sent, received = multiprocessing.Pipe()
    sent.send(model)  # as to another process
    for again in (EncoderdEmbedding.from_json(model.to_json()),
                  copy.deepcopy(model), received.recv()):
        assert again.embed_batch_size == 7
        assert again.to_dict() == model.to_dict()
        assert again.get_query_embedding(QUERY) == wanted


class Unpicklable:
    def __reduce__(self):
        raise TypeError("cannot pickle a lock")


def test_llama_index_keeps_its_own_settings_in_another_process(client):
    from encoderd.llama_index import EncoderdEmbedding
    from llama_index.core.storage.kvstore import SimpleKVStore
    model = EncoderdEmbedding(client)
    model.num_workers = 3
    again = EncoderdEmbedding.from_dict(model.to_dict())
    assert again.num_workers == 3
    model.embeddings_cache = SimpleKVStore()
    model.embeddings_cache.put("key", {"of": "a text"}, collection="embeddings")
    sent, received = multiprocessing.Pipe()
    sent.send(model)  # as to another process
    for again in (copy.deepcopy(model), received.recv()):
        assert again.num_workers == 3
        assert again.embeddings_cache.get("key", "embeddings") == {
            "of": "a text"}
    model.embeddings_cache = Unpicklable()
    sent.send(model)
    again = received.recv()
    assert (again.num_workers, again.embeddings_cache) == (3, None)


def test_haystack_finds_the_nearest_text_by_a_stored_pipeline(client):
    from encoderd.haystack import (EncoderdDocumentEmbedder,
                                   EncoderdTextEmbedder)
    from haystack import Document, Pipeline
    from haystack.components.retrievers.in_memory import (
        InMemoryEmbeddingRetriever)
    from haystack.document_stores.in_memory import InMemoryDocumentStore
    documents = [Document(content=text) for text in TEXTS]
    embedded = EncoderdDocumentEmbedder(client).run(documents)["documents"]
    assert documents[0].embedding is None  # the caller's stay as they are
    store = InMemoryDocumentStore()
    store.write_documents(embedded)
    pipeline = Pipeline()
    pipeline.add_component("embedder", EncoderdTextEmbedder(
        client, truncate="end"))
    pipeline = Pipeline.loads(pipeline.dumps(),
                              allowed_modules=["encoderd.haystack"])
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(
        store, top_k=1))
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    found = pipeline.run({"embedder": {"text": QUERY}})
    assert found["retriever"]["documents"][0].content == TEXTS[0]


def test_haystack_refuses_a_list_in_place_of_a_text(client):
    from encoderd.haystack import EncoderdTextEmbedder
    with pytest.raises(TypeError, match="text is a list; expected a str"):
        EncoderdTextEmbedder(client).run(text=[QUERY])


def test_chroma_finds_the_nearest_text_in_a_stored_collection(
        client, tmp_path):
    import chromadb
    from encoderd.chroma import EncoderdEmbeddingFunction
    settings = chromadb.Settings(anonymized_telemetry=False)
    function = EncoderdEmbeddingFunction(client, truncate="end")
    json.dumps(function.get_config())
    chromadb.PersistentClient(tmp_path, settings).create_collection(
        "texts", embedding_function=function).add(
        documents=TEXTS, ids=[str(i) for i in range(len(TEXTS))])
    stored = chromadb.PersistentClient(tmp_path, settings).get_collection(
        "texts")  # made again from its configuration
    found = stored.query(query_texts=[QUERY], n_results=1)
    assert found["documents"] == [[TEXTS[0]]]


def test_keybert_takes_the_embedder_and_loads_no_model(client):
    from encoderd.keybert import EncoderdEmbedder
    from keybert import KeyBERT
    embedder = EncoderdEmbedder(client)
    extractor = KeyBERT(model=embedder)
    assert extractor.model is embedder
    words = extractor.extract_keywords("The violin and the violin player "
                                       "played music in the concert hall.")
    assert "violin" in [word for word, _ in words]


def test_bertopic_takes_the_embedder_and_loads_no_model(client):
    from bertopic import BERTopic
    from encoderd.keybert import EncoderdEmbedder
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA
    texts = [f"{animal} number {i} sleeps" for animal in ("cat", "dog")
             for i in range(20)]
    texts += [f"stock {i} fell on the market" for i in range(40)]
    topics = BERTopic(
        embedding_model=EncoderdEmbedder(client), umap_model=PCA(5),
        hdbscan_model=KMeans(2, random_state=0)).fit_transform(texts)[0]
    assert len(set(topics[:40])) == len(set(topics[40:])) == 1
    assert topics[0] != topics[-1]
