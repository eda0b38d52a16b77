<?php
// Embeds two texts, prints their cosine, then what the error of a text that is
// too long says. README.md tells how to generate code and run this.
//   php client/examples/embed.php [HOST:PORT]
//
// gRPC over curl, for Debian 12 has no PHP extension of gRPC: one message is a
// byte 0, its length in 4 bytes and itself; the status comes as trailers.
set_include_path(__DIR__ . '/../../gen/php' . PATH_SEPARATOR
    . get_include_path());
spl_autoload_register(function ($class) {
    include_once str_replace('\\', '/', $class) . '.php';
});

use Encoderd\V1\{EmbedRequest, EmbedResponse, Input};
use Google\Rpc\{ErrorInfo, RetryInfo, Status};

const CODES = ['OK', 'CANCELLED', 'UNKNOWN', 'INVALID_ARGUMENT',
    'DEADLINE_EXCEEDED', 'NOT_FOUND', 'ALREADY_EXISTS', 'PERMISSION_DENIED',
    'RESOURCE_EXHAUSTED', 'FAILED_PRECONDITION', 'ABORTED', 'OUT_OF_RANGE',
    'UNIMPLEMENTED', 'INTERNAL', 'UNAVAILABLE', 'DATA_LOSS', 'UNAUTHENTICATED'];

/** What a call that failed leaves behind; headers by lower-case name. */
class CallError extends Exception
{
    public array $headers = [];
}

function call(string $target, string $method, $request, $answer)
{
    $message = $request->serializeToString();
    $headers = [];
    $curl = curl_init("http://$target/encoderd.v1.Encoder/$method");
    curl_setopt_array($curl, [
        CURLOPT_HTTP_VERSION => CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE,
        CURLOPT_HTTPHEADER => ['content-type: application/grpc',
            'te: trailers', 'grpc-timeout: 30S'],
        CURLOPT_POSTFIELDS => pack('CN', 0, strlen($message)) . $message,
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_TIMEOUT => 31,
        CURLOPT_HEADERFUNCTION => function ($curl, $line) use (&$headers) {
            [$name, $value] = explode(':', $line, 2) + [1 => ''];
            $headers[strtolower($name)] = trim($value);
            return strlen($line);
        },
    ]);
    $body = curl_exec($curl);
    $failed = $body === false ? curl_error($curl) : '';
    $code = (int) ($headers['grpc-status'] ?? 14);
    if ($failed !== '' || $code !== 0) {
        $said = $failed ?: rawurldecode($headers['grpc-message'] ?? '');
        $error = new CallError($said, $code);
        $error->headers = $headers;
        throw $error;
    }
    $answer->mergeFromString(substr($body, 5));
    return $answer;
}

function embed(string $target, string ...$texts): EmbedResponse
{
    $inputs = array_map(fn($text) => new Input(['text' => $text]), $texts);
    return call($target, 'Embed', new EmbedRequest(['inputs' => $inputs]),
        new EmbedResponse());
}

function dot($a, $b): float
{
    $sum = 0;
    foreach ($a as $i => $value) {
        $sum += $value * $b[$i];
    }
    return $sum;
}

/** Prints an error with its reason, metadata and retry delay. */
function explain(CallError $error): void
{
    printf("%s: %s\n", CODES[$error->getCode()], $error->getMessage());
    $bytes = $error->headers['grpc-status-details-bin'] ?? '';
    $status = new Status();
    $status->mergeFromString(base64_decode($bytes));
    $delay = 'none';
    foreach ($status->getDetails() as $any) {
        $type = substr(strrchr($any->getTypeUrl(), '/'), 1);
        if ($type === 'google.rpc.ErrorInfo') {
            $info = new ErrorInfo();
            $info->mergeFromString($any->getValue());
            printf("reason %s\n", $info->getReason());
            $metadata = iterator_to_array($info->getMetadata());
            ksort($metadata);
            foreach ($metadata as $key => $value) {
                printf("%s %s\n", $key, $value);
            }
        } elseif ($type === 'google.rpc.RetryInfo') {
            $retry = new RetryInfo();
            $retry->mergeFromString($any->getValue());
            $wait = $retry->getRetryDelay();
            $delay = sprintf('%.3f s',
                $wait->getSeconds() + $wait->getNanos() / 1e9);
        }
    }
    printf("retry delay %s\n", $delay);
}

$target = $argv[1] ?? 'localhost:8400';
try {
    $found = embed($target, 'A man eats.', 'Someone has a meal.');
} catch (CallError $error) {
    explain($error);
    exit(1);
}
$a = $found->getEmbeddings()[0]->getFloats()->getValues();
$b = $found->getEmbeddings()[1]->getFloats()->getValues();
printf("cosine %.4f\n", dot($a, $b) / sqrt(dot($a, $a) * dot($b, $b)));
try {
    embed($target, str_repeat('word ', 1000));
} catch (CallError $error) {
    explain($error);
}
