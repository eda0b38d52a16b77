// Embeds two texts, prints their cosine, then what the error of a text that is
// too long says.
//   node client/examples/embed.mjs [HOST:PORT]
//
// Node alone, without a package and without generated code: one message is a
// byte 0, its length in 4 bytes and itself; the status comes as trailers. With
// npm at hand use @grpc/grpc-js and @grpc/proto-loader instead.
import http2 from 'node:http2';

const CODES = ['OK', 'CANCELLED', 'UNKNOWN', 'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED', 'NOT_FOUND', 'ALREADY_EXISTS', 'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED', 'FAILED_PRECONDITION', 'ABORTED', 'OUT_OF_RANGE',
  'UNIMPLEMENTED', 'INTERNAL', 'UNAVAILABLE', 'DATA_LOSS', 'UNAUTHENTICATED'];

class CallError extends Error {
  constructor(code, message, details) {
    super(message);
    this.code = code;
    this.details = details;  // bytes of a google.rpc.Status
  }
}

// The wire format of Protocol Buffers, as far as it is needed here.

function varint(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) {
    bytes.push(value % 128 + 128);
  }
  return Buffer.from([...bytes, value]);
}

// A field of bytes, a string or a message.
function field(number, value) {
  const bytes = Buffer.from(value);
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

// Field number -> its values, in order: numbers, or Buffers of what has bytes.
function parse(bytes) {
  const fields = new Map();
  let at = 0;
  const readVarint = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      value += byte % 128 * scale;
      if (byte < 128) return value;
    }
  };
  const take = (size) => bytes.subarray(at, at += size);
  while (at < bytes.length) {
    const key = readVarint();
    const read = [readVarint, () => take(8), () => take(readVarint()),
      undefined, undefined, () => take(4)][key % 8];
    const number = Math.floor(key / 8);
    fields.set(number, [...fields.get(number) ?? [], read()]);
  }
  return fields;
}

function call(target, method, message) {
  return new Promise((resolve, reject) => {
    const session = http2.connect(`http://${target}`);
    const fail = (error) => {
      session.destroy();
      reject(new CallError(14, error.message, Buffer.alloc(0)));
    };
    session.on('error', fail);
    const stream = session.request({
      ':method': 'POST',
      ':path': `/encoderd.v1.Encoder/${method}`,
      'content-type': 'application/grpc',
      'te': 'trailers',
      'grpc-timeout': '30S',
    });
    const chunks = [];
    let status = {};
    const keep = (headers) => status = {...status, ...headers};
    stream.on('response', keep);
    stream.on('trailers', keep);
    stream.on('data', (chunk) => chunks.push(chunk));
    stream.on('error', fail);
    stream.on('end', () => {
      session.close();
      const code = Number(status['grpc-status'] ?? 14);
      if (code === 0) return resolve(Buffer.concat(chunks).subarray(5));
      reject(new CallError(
          code, decodeURIComponent(status['grpc-message'] ?? ''),
          Buffer.from(status['grpc-status-details-bin'] ?? '', 'base64')));
    });
    const head = Buffer.alloc(5);
    head.writeUInt32BE(message.length, 1);
    stream.end(Buffer.concat([head, message]));
  });
}

// EmbedRequest.inputs is 2, Input.text 1; EmbedResponse.embeddings is 3,
// Embedding.packed 2; EmbedRequest.options is 3, EmbedOptions.packed 6.
async function embed(target, ...texts) {
  const packed = Buffer.concat([varint(6 * 8), varint(1)]);
  const answer = await call(target, 'Embed', Buffer.concat(
      [...texts.map((text) => field(2, field(1, text))), field(3, packed)]));
  return parse(answer).get(3).map((embedding) => {
    const bytes = parse(embedding).get(2)[0];
    return Array.from({length: bytes.length / 4},
                      (_, i) => bytes.readFloatLE(4 * i));
  });
}

const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

// Prints an error with its reason, metadata and retry delay.
function explain(error) {
  if (!(error instanceof CallError)) throw error;
  console.log(`${CODES[error.code]}: ${error.message}`);
  let delay = 'none';
  for (const any of parse(error.details).get(3) ?? []) {  // Status.details
    const [type, value] = [1, 2].map((i) => parse(any).get(i)[0]);
    const detail = parse(value);
    if (`${type}`.endsWith('/google.rpc.ErrorInfo')) {
      console.log(`reason ${detail.get(1)[0]}`);
      const metadata = (detail.get(3) ?? []).map((entry) => parse(entry))
          .map((entry) => `${entry.get(1)[0]} ${entry.get(2)[0]}`);
      for (const line of metadata.sort()) console.log(line);
    } else if (`${type}`.endsWith('/google.rpc.RetryInfo')) {
      const wait = parse(detail.get(1)[0]);  // seconds 1, nanos 2
      const seconds = (wait.get(1)?.[0] ?? 0) + (wait.get(2)?.[0] ?? 0) / 1e9;
      delay = `${seconds.toFixed(3)} s`;
    }
  }
  console.log(`retry delay ${delay}`);
}

const target = process.argv[2] ?? 'localhost:8400';
try {
  const [a, b] = await embed(target, 'A man eats.', 'Someone has a meal.');
  console.log(
      `cosine ${(dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))).toFixed(4)}`);
  await embed(target, 'word '.repeat(1000)).catch(explain);
} catch (error) {
  explain(error);
  process.exitCode = 1;
}
