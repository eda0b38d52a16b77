# encoderd in a container. The model is mounted, never inside:
#   docker build -t encoderd .
#   docker run --rm --read-only --cap-drop=ALL -p 127.0.0.1:8400:8400 \
#     -p 127.0.0.1:8401:8401 -v "$(deploy/fetch-model.sh)":/model:ro encoderd
FROM debian:12-slim AS build
COPY deploy/install-deps.sh /src/deploy/
RUN /src/deploy/install-deps.sh
COPY CMakeLists.txt CMakePresets.json /src/
COPY deploy /src/deploy
COPY proto /src/proto
COPY engine /src/engine
COPY client /src/client
COPY server /src/server
WORKDIR /src
RUN cmake --preset release \
  && cmake --build build/release --target encoderd encoderctl \
  && strip build/release/bin/encoderd build/release/bin/encoderctl

FROM debian:12-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends \
    libgrpc++1.51 libprotobuf32 libabsl20220623 libprometheus-cpp-core1.0 \
    libdnnl2 libicu72 libpng16-16 \
  && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/build/release/bin/encoderd \
  /src/build/release/bin/encoderctl /usr/local/bin/
COPY LICENSE /usr/share/doc/encoderd/
USER 65532:65532
EXPOSE 8400 8401
STOPSIGNAL SIGTERM
# Ready, not merely alive: NOT_SERVING while loading and while draining.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["encoderctl", "health", "--target=127.0.0.1:8400"]
ENTRYPOINT ["encoderd"]
CMD ["--model=/model", "--listen=0.0.0.0:8400", "--http_listen=0.0.0.0:8401"]
