// encoderd: serves a BERT-style encoder over gRPC. See server/README.md.
#include "engine/model.h"
#include "server/run.h"

int main(int argc, char** argv) {
  return encoderd::RunServer(argc, argv, &encoderd::Model::Load,
                             {ENCODERD_REVISION});
}
