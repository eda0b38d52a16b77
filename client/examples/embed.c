// Embeds two texts, prints their cosine, then what the error of a text that is
// too long says. README.md tells how to generate code and run this.
//   embed [HOST:PORT]
//
// Messages by protobuf-c, calls by the core of gRPC, which has a C interface.
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoderd/v1/encoder.pb-c.h"
#include "google/rpc/error_details.pb-c.h"

// clang-format off
static const char* const kCodes[] = {
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"};
// clang-format on

// How a call ended; whoever gets it calls EndCall.
typedef struct {
  grpc_status_code code;
  grpc_slice message;
  grpc_call* call;  // owns what trailers point to
  grpc_metadata_array trailers;
  grpc_byte_buffer* answer;  // NULL unless code is GRPC_STATUS_OK
} Result;

static void EndCall(Result* result) {
  grpc_slice_unref(result->message);
  grpc_metadata_array_destroy(&result->trailers);
  if (result->answer != NULL) grpc_byte_buffer_destroy(result->answer);
  grpc_call_unref(result->call);
}

// One call from its request to its end, within 30 seconds.
static Result Call(grpc_channel* channel, const char* method,
                   grpc_slice request) {
  Result result = {.answer = NULL};
  grpc_metadata_array headers;
  grpc_metadata_array_init(&headers);
  grpc_metadata_array_init(&result.trailers);
  grpc_completion_queue* queue = grpc_completion_queue_create_for_pluck(NULL);
  const gpr_timespec deadline = gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(30, GPR_TIMESPAN));
  const grpc_slice path = grpc_slice_from_static_string(method);
  result.call = grpc_channel_create_call(channel, NULL, GRPC_PROPAGATE_DEFAULTS,
                                         queue, path, NULL, deadline, NULL);
  grpc_byte_buffer* message = grpc_raw_byte_buffer_create(&request, 1);

  grpc_op ops[6];
  memset(ops, 0, sizeof(ops));
  ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
  ops[1].op = GRPC_OP_SEND_MESSAGE;
  ops[1].data.send_message.send_message = message;
  ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
  ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
  ops[3].data.recv_initial_metadata.recv_initial_metadata = &headers;
  ops[4].op = GRPC_OP_RECV_MESSAGE;
  ops[4].data.recv_message.recv_message = &result.answer;
  ops[5].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
  ops[5].data.recv_status_on_client.trailing_metadata = &result.trailers;
  ops[5].data.recv_status_on_client.status = &result.code;
  ops[5].data.recv_status_on_client.status_details = &result.message;
  grpc_call_start_batch(result.call, ops, 6, result.call, NULL);
  grpc_completion_queue_pluck(queue, result.call,
                              gpr_inf_future(GPR_CLOCK_REALTIME), NULL);

  grpc_byte_buffer_destroy(message);
  grpc_metadata_array_destroy(&headers);
  grpc_completion_queue_shutdown(queue);
  grpc_completion_queue_destroy(queue);
  return result;
}

static Result Embed(grpc_channel* channel, char** texts, size_t count) {
  Encoderd__V1__Input inputs[count];
  Encoderd__V1__Input* pointers[count];
  for (size_t i = 0; i < count; ++i) {
    encoderd__v1__input__init(&inputs[i]);
    inputs[i].content_case = ENCODERD__V1__INPUT__CONTENT_TEXT;
    inputs[i].text = texts[i];
    pointers[i] = &inputs[i];
  }
  Encoderd__V1__EmbedRequest request = ENCODERD__V1__EMBED_REQUEST__INIT;
  request.n_inputs = count;
  request.inputs = pointers;
  grpc_slice bytes =
      grpc_slice_malloc(encoderd__v1__embed_request__get_packed_size(&request));
  encoderd__v1__embed_request__pack(&request, GRPC_SLICE_START_PTR(bytes));
  Result result = Call(channel, "/encoderd.v1.Encoder/Embed", bytes);
  grpc_slice_unref(bytes);
  return result;
}

static double Dot(const Encoderd__V1__FloatVector* a,
                  const Encoderd__V1__FloatVector* b) {
  double sum = 0;
  for (size_t i = 0; i < a->n_values; ++i) {
    sum += (double)a->values[i] * b->values[i];
  }
  return sum;
}

// Prints the cosine of the answer's two embeddings. 0 if it is no such answer.
static int PrintCosine(grpc_byte_buffer* answer) {
  grpc_byte_buffer_reader reader;
  if (!grpc_byte_buffer_reader_init(&reader, answer)) return 0;
  const grpc_slice bytes = grpc_byte_buffer_reader_readall(&reader);
  Encoderd__V1__EmbedResponse* response = encoderd__v1__embed_response__unpack(
      NULL, GRPC_SLICE_LENGTH(bytes), GRPC_SLICE_START_PTR(bytes));
  const int right = response != NULL && response->n_embeddings == 2;
  if (right) {
    const Encoderd__V1__FloatVector* a = response->embeddings[0]->floats;
    const Encoderd__V1__FloatVector* b = response->embeddings[1]->floats;
    printf("cosine %.4f\n", Dot(a, b) / sqrt(Dot(a, a) * Dot(b, b)));
  }
  encoderd__v1__embed_response__free_unpacked(response, NULL);
  grpc_slice_unref(bytes);
  grpc_byte_buffer_reader_destroy(&reader);
  return right;
}

static int ByKey(const void* a, const void* b) {
  return strcmp((*(Google__Rpc__ErrorInfo__MetadataEntry* const*)a)->key,
                (*(Google__Rpc__ErrorInfo__MetadataEntry* const*)b)->key);
}

static void PrintInfo(const ProtobufCBinaryData* bytes) {
  Google__Rpc__ErrorInfo* info =
      google__rpc__error_info__unpack(NULL, bytes->len, bytes->data);
  if (info == NULL) return;
  printf("reason %s\n", info->reason);
  if (info->n_metadata > 0) {
    qsort(info->metadata, info->n_metadata, sizeof(*info->metadata), ByKey);
  }
  for (size_t i = 0; i < info->n_metadata; ++i) {
    printf("%s %s\n", info->metadata[i]->key, info->metadata[i]->value);
  }
  google__rpc__error_info__free_unpacked(info, NULL);
}

// Seconds; less than 0 where the error names none.
static double RetryDelay(const ProtobufCBinaryData* bytes) {
  double seconds = -1;
  Google__Rpc__RetryInfo* retry =
      google__rpc__retry_info__unpack(NULL, bytes->len, bytes->data);
  if (retry != NULL && retry->retry_delay != NULL) {
    seconds = retry->retry_delay->seconds + retry->retry_delay->nanos / 1e9;
  }
  google__rpc__retry_info__free_unpacked(retry, NULL);
  return seconds;
}

// The google.rpc.Status of a call, NULL if it brought none.
static Google__Rpc__Status* FindStatus(const grpc_metadata_array* trailers) {
  for (size_t i = 0; i < trailers->count; ++i) {
    const grpc_metadata* entry = &trailers->metadata[i];
    if (grpc_slice_str_cmp(entry->key, "grpc-status-details-bin") == 0) {
      return google__rpc__status__unpack(NULL, GRPC_SLICE_LENGTH(entry->value),
                                         GRPC_SLICE_START_PTR(entry->value));
    }
  }
  return NULL;
}

// Prints an error with its reason, metadata and retry delay.
static void Explain(const Result* result) {
  printf("%s: %.*s\n", kCodes[result->code],
         (int)GRPC_SLICE_LENGTH(result->message),
         (const char*)GRPC_SLICE_START_PTR(result->message));
  double delay = -1;
  Google__Rpc__Status* status = FindStatus(&result->trailers);
  for (size_t i = 0; status != NULL && i < status->n_details; ++i) {
    const Google__Protobuf__Any* detail = status->details[i];
    if (strstr(detail->type_url, "/google.rpc.ErrorInfo") != NULL) {
      PrintInfo(&detail->value);
    } else if (strstr(detail->type_url, "/google.rpc.RetryInfo") != NULL) {
      delay = RetryDelay(&detail->value);
    }
  }
  google__rpc__status__free_unpacked(status, NULL);
  if (delay < 0) {
    printf("retry delay none\n");
  } else {
    printf("retry delay %.3f s\n", delay);
  }
}

int main(int argc, char** argv) {
  grpc_init();
  grpc_arg limit = {.type = GRPC_ARG_INTEGER,
                    .key = "grpc.max_receive_message_length",
                    .value.integer = 16 << 20};
  const grpc_channel_args arguments = {1, &limit};
  grpc_channel_credentials* credentials = grpc_insecure_credentials_create();
  grpc_channel* channel = grpc_channel_create(
      argc > 1 ? argv[1] : "localhost:8400", credentials, &arguments);
  grpc_channel_credentials_release(credentials);

  char* texts[] = {"A man eats.", "Someone has a meal."};
  Result found = Embed(channel, texts, 2);
  int done = found.code == GRPC_STATUS_OK;
  if (done) {
    done = PrintCosine(found.answer);
  } else {
    Explain(&found);
  }
  EndCall(&found);
  if (done) {
    static char words[5 * 1000 + 1];
    for (int i = 0; i < 1000; ++i) memcpy(words + 5 * i, "word ", 5);
    char* too_long[] = {words};
    Result refused = Embed(channel, too_long, 1);
    if (refused.code != GRPC_STATUS_OK) Explain(&refused);
    EndCall(&refused);
  }
  grpc_channel_destroy(channel);
  grpc_shutdown();
  return done ? 0 : 1;
}
