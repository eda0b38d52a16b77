#!/usr/bin/env bash
# From a fresh clone to embeddings: installs missing packages, builds, fetches
# the model, starts the server, embeds three sentences and leaves the server
# running in the foreground (Ctrl-C stops it). Each step says how long it usually
# takes and how long it took; a second start takes seconds.
#
#   deploy/quickstart.sh [--once] [--port N] [--http_port N]
#
#   --once         stop the server after the example and exit 0; uses any two
#                  free ports by default. The server's log goes to
#                  build/release/quickstart.log, and is shown if it fails
#   --port N       gRPC on 127.0.0.1:N (default 8400)
#   --http_port N  metrics and health on 127.0.0.1:N (default 8401)
#
# ENCODERD_CMAKE_FLAGS: further flags of CMake for the first build, separated by
# spaces, such as -DENCODERD_CUDA=OFF.
set -euo pipefail
unset CDPATH  # with it, cd may find another folder, and prints its name
cd "$(dirname "$0")/.."

# It talks to its own server, without TLS and tokens: what the shell has set for
# another server does not count.
unset ENCODERD_TLS ENCODERD_CA_FILE ENCODERD_CERTIFICATE_FILE ENCODERD_KEY_FILE \
  ENCODERD_SERVER_NAME ENCODERD_TOKEN ENCODERD_TOKEN_FILE

step=
began=0
# begin STEP USUALLY: ends the step before, and says how long this one takes.
begin() {
  end
  step=$1
  began=$SECONDS
  printf '\n-- %s (usually %s)\n' "$step" "$2"
}
end() {
  if [[ -n $step ]]; then echo "   $step: $((SECONDS - began)) s"; fi
  step=
}
fail() {
  printf 'quickstart: %s\n' "$@" >&2
  exit 1
}

once=false
port=
http_port=
while [[ $# -gt 0 ]]; do
  if [[ $1 == --*=* ]]; then set -- "${1%%=*}" "${1#*=}" "${@:2}"; fi
  case $1 in
    -h | --help)
      sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' deploy/quickstart.sh
      exit 0
      ;;
    --once) once=true ;;
    --port | --http_port)
      [[ ${2-} =~ ^[0-9]+$ ]] || fail "$1 needs a number, not '${2-}'"
      if [[ $1 == --port ]]; then port=$2; else http_port=$2; fi
      shift
      ;;
    *) fail "unknown argument '$1'; known: --once, --port N, --http_port N" ;;
  esac
  shift
done

trap 'exit 130' INT  # also where a program turns Ctrl-C into a failure

begin "packages" "a second; minutes if packages are missing"
deploy/install-deps.sh

free_port() {
  python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

in_use() { (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }

if $once; then
  port=${port:-$(free_port)}
  http_port=${http_port:-$(free_port)}
fi
port=${port:-8400}
http_port=${http_port:-8401}
check_ports() {
  if in_use "$port"; then
    fail "port $port of 127.0.0.1 is in use, maybe by a server that still runs;" \
      "stop that program or choose another: deploy/quickstart.sh --port N"
  fi
  if in_use "$http_port"; then
    fail "port $http_port of 127.0.0.1 is in use;" \
      "stop that program or choose another: deploy/quickstart.sh --http_port N"
  fi
}
check_ports

cores=$(nproc)
if [[ -x build/release/bin/encoderd ]]; then
  usually="seconds if few sources changed"
else
  usually="$(((8 + cores - 1) / cores)) minutes on this machine's $cores cores"
fi
begin "build" "$usually"
if [[ ! -f build/release/build.ninja ]]; then
  flags=(-DENCODERD_CUDA=OFF)
  # Compiling only for this host's GPU saves most of the time. Of compute
  # capability 9.0 the build takes CUTLASS, where its headers can be had.
  if nvidia-smi --list-gpus > /dev/null 2>&1; then
    flags=(-DCMAKE_CUDA_ARCHITECTURES=native)
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader || :)
    if [[ $capability == 9.0* ]]; then
      flags=(-DCMAKE_CUDA_ARCHITECTURES=90a-real)
      deploy/fetch-cutlass.sh > /dev/null ||
        echo "   without CUTLASS: feed-forward layers are slower on this GPU;" \
          "to try again, delete build/release and start again"
    fi
  fi
  read -ra more <<< "${ENCODERD_CMAKE_FLAGS-}"
  configured=$(cmake --preset release "${flags[@]}" "${more[@]}")
  if [[ ${flags[0]} != -DENCODERD_CUDA=OFF &&
    $configured == *"not built (ENCODERD_CUDA=AUTO)"* ]]; then
    echo "   for the CPU, although there is a GPU: nvcc or cuBLAS's headers are" \
      "missing; to use the GPU, install CUDA's toolkit, delete build/release" \
      "and start again"
  fi
else
  # Fails where it was configured for another folder, of which this is a copy.
  cmake -S . -B build/release > /dev/null ||
    fail "build/release cannot be configured; if this is a copy of another" \
      "folder, delete build/release and start again"
fi
# A terminal gets ninja's own status line, a log one line per tenth.
if [[ -t 1 ]]; then
  NINJA_STATUS='[%f/%t, %p, %es] ' \
    cmake --build build/release --parallel "$cores"
else
  NINJA_STATUS='[%f/%t] ' cmake --build build/release --parallel "$cores" |
    deploy/build-progress.sh
fi

begin "model" "a second; the first time, as long as a download of 84 MB"
model=$(deploy/fetch-model.sh)
echo "$model"

# name_of PROCESS: what it runs, nothing where it has ended.
name_of() { cat "/proc/$1/comm" 2> /dev/null || true; }
stopped=false
# stop: returns the server's exit code, 0 where none is running. The server is
# the only job in the background: $! names it from its first moment on, so that
# a Ctrl-C just then leaves none behind.
stop() {
  local code=0
  if ! $stopped && [[ -n ${!-} ]]; then
    # Until it runs a program, a job is a copy of this shell and loses signals.
    while [[ $(name_of "$!") == "$(name_of $$)" ]]; do sleep 0.01; done
    kill -TERM "$!" 2> /dev/null || true
    wait "$!" || code=$?
    stopped=true
  fi
  return "$code"
}
trap 'stop || true' EXIT
trap 'exit 143' TERM

begin "server" "two seconds"
check_ports  # build and download take long
# With --once the log would bury the example.
log=
exec 3>&1 4>&2
if $once; then
  log=build/release/quickstart.log
  echo "log: $log"
  exec 3> "$log" 4>&3
fi
server_failed() {
  if [[ -n $log ]]; then cat "$log" >&2; fi
  fail "$1; its log is above"
}
stop_or_fail() {
  stop || server_failed "the server ended with exit code $? when it was stopped"
}

# In its own session: Ctrl-C reaches this script only, which asks the server
# once to finish what it accepted. A second signal would end it at once.
setsid build/release/bin/encoderd --model="$model" --listen="127.0.0.1:$port" \
  --http_listen="127.0.0.1:$http_port" >&3 2>&4 &
server=$!

ctl() {
  build/release/bin/encoderctl "$1" --target="127.0.0.1:$port" "${@:2}"
}

patience=30  # seconds
end_of_patience=$((SECONDS + patience))
while true; do
  ready=false
  if ctl health --timeout=1s > /dev/null 2>&1; then ready=true; fi
  # Last: if it has ended, another server answers on its port.
  kill -0 "$server" 2> /dev/null ||
    server_failed "the server failed to start"
  if $ready; then break; fi
  if ((SECONDS > end_of_patience)); then
    server_failed "the server was not ready within $patience s"
  fi
  sleep 0.1
done

begin "cosine similarity of three sentences" "a second"
ctl similarity \
  "A man is eating food." \
  "Someone has a meal." \
  "The stock market fell sharply today."
end

if $once; then
  stop_or_fail
  printf '\n-- done; to keep a server running: deploy/quickstart.sh\n'
  exit 0
fi

# From here on Ctrl-C is a good end; a second one, a second later, ends the server.
trap 'trap "exit 130" INT; stop_or_fail; exit 0' INT

target=
if [[ $port != 8400 ]]; then target=" --target=127.0.0.1:$port"; fi
python_package=./client/python
cat << EOF

-- the server is running; try in another terminal:
  build/release/bin/encoderctl embed$target "Hello, world"
  build/release/bin/encoderctl tokenize$target "Hello, world"
  build/release/bin/encoderctl models$target
  curl http://127.0.0.1:$http_port/metrics
In Python:
  python3 -m venv .venv && .venv/bin/pip install $python_package
  .venv/bin/python -c 'import encoderd
print(encoderd.Client("127.0.0.1:$port").encode("Hello, world").shape)'
Other models: deploy/fetch-model.sh --list
EOF
# By the shell itself: bash 5.2 may not end by a Ctrl-C that comes just when it
# starts a program.
echo "Ctrl-C stops the server."
wait "$server"
stopped=true
