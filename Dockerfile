# encoderd in a container: programs, the libraries that they load, and nothing
# else; no shell, no package manager. README.md of deploy/ says more.
#
# Needs BuildKit (DOCKER_BUILDKIT=1 with Docker 20.10).
#   docker build -t encoderd --build-arg REVISION="$(git rev-parse HEAD)" .
#   docker run --rm --read-only --cap-drop=ALL \
#     --security-opt=no-new-privileges --stop-timeout=40 \
#     -p 127.0.0.1:8400:8400 -p 127.0.0.1:8401:8401 \
#     -v "$(deploy/fetch-model.sh)":/model:ro encoderd
#
# --stop-timeout is needed: on TERM the server answers all that it accepted, and
# docker kills it after 10 s unless told otherwise, with every call that still
# waits. It is --drain_delay + --drain_timeout + 10 s: 40 with the defaults.
#
# On another port: --listen and ENCODERD_TARGET, which the health check asks:
#   docker run ... -e ENCODERD_TARGET=127.0.0.1:9400 encoderd \
#     --model=/model --listen=0.0.0.0:9400 --http_listen=0.0.0.0:9401 --insecure
#
# With a model inside:
#   printf 'FROM encoderd\nCOPY . /model\n' |
#     docker build -t encoderd-minilm -f - "$(deploy/fetch-model.sh)"
#
# Targets: cpu (the default) and cuda, which has cuBLASLt too and needs a GPU's
# driver on the host: docker build --target=cuda; docker run --gpus=all.
ARG BASE=debian:12-slim
ARG VERSION=0.1.0
ARG REVISION=unknown

FROM ${BASE} AS sources
COPY deploy/install-deps.sh /src/deploy/
RUN /src/deploy/install-deps.sh && apt-get clean
COPY CMakeLists.txt CMakePresets.json LICENSE /src/
COPY deploy /src/deploy
COPY proto /src/proto
COPY engine /src/engine
COPY client /src/client
COPY server /src/server
WORKDIR /src

# The settings and labels of both kinds of image.
FROM scratch AS settings
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="encoderd" \
  org.opencontainers.image.description="Text to embeddings over gRPC" \
  org.opencontainers.image.licenses="Apache-2.0" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${REVISION}"
ENV PATH=/usr/local/bin ENCODERD_TARGET=127.0.0.1:8400
USER 65532:65532
EXPOSE 8400 8401
STOPSIGNAL SIGTERM
# Ready, not merely alive: NOT_SERVING while loading and while draining.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["encoderctl", "health"]
ENTRYPOINT ["encoderd"]
# --insecure: the container has its own network. docker run -p decides who can
# reach the ports; flags of the server turn TLS on.
CMD ["--model=/model", "--listen=0.0.0.0:8400", "--http_listen=0.0.0.0:8401", \
  "--insecure"]

FROM sources AS build-cpu
ARG VERSION
ARG REVISION
RUN --mount=type=cache,target=/root/.cache/ccache \
  cmake --preset release -DENCODERD_CUDA=OFF -DENCODERD_REVISION="${REVISION}" \
  && cmake --build build/release --target encoderd encoderctl \
  && strip build/release/bin/encoderd build/release/bin/encoderctl
RUN deploy/image/root.py --version="${VERSION}" --revision="${REVISION}" \
  $(sed '/^#/d; s/^/--built-in=/' deploy/package/built-in.txt) \
  /image build/release/bin/encoderd build/release/bin/encoderctl

FROM settings AS cpu
COPY --from=build-cpu /image /

FROM sources AS build-cuda
RUN python3 -m venv /cuda \
  && /cuda/bin/pip install --no-cache-dir --no-deps --require-hashes \
    -r deploy/image/cuda-packages.txt \
  && ln -s /cuda/lib/python3*/site-packages/nvidia/cu13 /usr/local/cuda \
  && ln -s lib /usr/local/cuda/lib64 \
  && ln -s libcudart.so.13 /usr/local/cuda/lib/libcudart.so \
  && deploy/fetch-cutlass.sh /cutlass
ARG VERSION
ARG REVISION
# Such as 90a-real for one kind of card; empty: all that the project knows.
ARG CUDA_ARCHITECTURES=
RUN --mount=type=cache,target=/root/.cache/ccache \
  CUDA_PATH=/usr/local/cuda cmake --preset release -DENCODERD_CUDA=ON \
    -DCMAKE_CUDA_COMPILER=/usr/local/cuda/bin/nvcc \
    ${CUDA_ARCHITECTURES:+-DCMAKE_CUDA_ARCHITECTURES="${CUDA_ARCHITECTURES}"} \
    -DENCODERD_CUTLASS_INCLUDE=/cutlass/include \
    -DENCODERD_REVISION="${REVISION}" \
  && cmake --build build/release --target encoderd encoderctl \
  && strip build/release/bin/encoderd build/release/bin/encoderctl
RUN cp /cutlass/LICENSE.txt LICENSE.cutlass \
  && deploy/image/root.py --version="${VERSION}" --revision="${REVISION}" \
    $(sed '/^#/d; s/^/--built-in=/' deploy/package/built-in.txt) \
    --built-in=nvidia-cuda-runtime \
    --wheels="$(echo /cuda/lib/python3*/site-packages)" \
    --library=/usr/local/cuda/lib/libcublasLt.so.13 --license=LICENSE.cutlass \
    /image build/release/bin/encoderd build/release/bin/encoderctl

FROM settings AS cuda
COPY --from=build-cuda /image /
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
# A GPU that has failed must not be replaced by the CPU in silence.
CMD ["--model=/model", "--listen=0.0.0.0:8400", "--http_listen=0.0.0.0:8401", \
  "--insecure", "--device=cuda"]

# The last target is the one that is built where none is named.
FROM cpu
