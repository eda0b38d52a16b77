# Embeds two texts, prints their cosine, then what the error of a text that is
# too long says.
#   perl client/examples/embed.pl [HOST:PORT]
#
# gRPC over curl, without generated code: one message is a byte 0, its length in
# 4 bytes and itself; the status comes as trailers.
use strict;
use warnings;
use MIME::Base64 qw(decode_base64);
use WWW::Curl::Easy;

use constant HTTP_2_PRIOR_KNOWLEDGE => 5;    # a name that WWW::Curl lacks

my @CODES = qw(OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND
    ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION
    ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS
    UNAUTHENTICATED);

# The wire format of Protocol Buffers, as far as it is needed here.

sub varint {
    my ($value) = @_;
    my $bytes = '';
    for (; $value > 127; $value >>= 7) { $bytes .= chr($value & 127 | 128) }
    return $bytes . chr($value);
}

# A field of bytes, a string or a message.
sub field {
    my ($number, $bytes) = @_;
    return varint($number << 3 | 2) . varint(length $bytes) . $bytes;
}

# Field number -> its values, in order: numbers, or bytes.
sub parse {
    my ($bytes) = @_;
    my ($at, %fields) = (0);
    my $take = sub { $at += $_[0]; substr $bytes, $at - $_[0], $_[0] };
    my $read_varint = sub {
        my ($value, $shift) = (0, 0);
        for (;; $shift += 7) {
            my $byte = ord $take->(1);
            $value |= ($byte & 127) << $shift;
            return $value if $byte < 128;
        }
    };
    while ($at < length $bytes) {
        my $key = $read_varint->();
        my $value = ($key & 7) == 0 ? $read_varint->()
            : ($key & 7) == 1       ? $take->(8)
            : ($key & 7) == 2       ? $take->($read_varint->())
            :                         $take->(4);
        push @{$fields{$key >> 3}}, $value;
    }
    return \%fields;
}

# The answer's bytes; dies with code, message and details of a call that failed.
sub call {
    my ($target, $method, $message) = @_;
    my ($body, %headers) = ('');
    my $curl = WWW::Curl::Easy->new;
    $curl->setopt(CURLOPT_URL, "http://$target/encoderd.v1.Encoder/$method");
    $curl->setopt(CURLOPT_HTTP_VERSION, HTTP_2_PRIOR_KNOWLEDGE);
    $curl->setopt(CURLOPT_HTTPHEADER, ['content-type: application/grpc',
        'te: trailers', 'grpc-timeout: 30S']);
    my $request = pack('CN', 0, length $message) . $message;
    $curl->setopt(CURLOPT_POST, 1);
    $curl->setopt(CURLOPT_POSTFIELDSIZE, length $request);
    $curl->setopt(CURLOPT_POSTFIELDS, $request);
    $curl->setopt(CURLOPT_TIMEOUT, 31);
    $curl->setopt(CURLOPT_WRITEFUNCTION,
        sub { $body .= $_[0]; length $_[0] });
    $curl->setopt(CURLOPT_HEADERFUNCTION, sub {
        $headers{lc $1} = $2 if $_[0] =~ /^([\w-]+): *(.*?)\r?\n/;
        return length $_[0];
    });
    my $failed = $curl->perform;
    my $said = $failed ? $curl->strerror($failed) : $headers{'grpc-message'};
    my $code = $failed ? 14 : $headers{'grpc-status'} // 14;
    return substr $body, 5 if $code == 0;
    ($said //= '') =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
    my $details = decode_base64($headers{'grpc-status-details-bin'} // '');
    die {code => $code, message => $said, details => $details};
}

# EmbedRequest.inputs is 2, Input.text 1; EmbedResponse.embeddings is 3,
# Embedding.packed 2; EmbedRequest.options is 3, EmbedOptions.packed 6.
sub embed {
    my ($target, @texts) = @_;
    my $request = join '', map { field(2, field(1, $_)) } @texts;
    my $options = field(3, varint(6 << 3) . varint(1));
    my $answer = parse(call($target, 'Embed', $request . $options));
    return map { [unpack 'f<*', parse($_)->{2}[0]] } @{$answer->{3}};
}

sub dot {
    my ($a, $b) = @_;
    my $sum = 0;
    $sum += $a->[$_] * $b->[$_] for 0 .. $#$a;
    return $sum;
}

# Prints an error with its reason, metadata and retry delay.
sub explain {
    my ($error) = @_;
    die $error if !ref $error;
    print "$CODES[$error->{code}]: $error->{message}\n";
    my $delay = 'none';
    for my $any (@{parse($error->{details})->{3} // []}) {    # Status.details
        my ($type, $bytes) = map { $_->[0] } @{parse($any)}{1, 2};
        my $detail = parse($bytes);
        if ($type =~ m{/google\.rpc\.ErrorInfo$}) {
            print "reason $detail->{1}[0]\n";
            my @metadata = map { parse($_) } @{$detail->{3} // []};
            print sort map { "$_->{1}[0] $_->{2}[0]\n" } @metadata;
        } elsif ($type =~ m{/google\.rpc\.RetryInfo$}) {
            my $wait = parse($detail->{1}[0]);    # seconds 1, nanos 2
            $delay = sprintf '%.3f s',
                ($wait->{1}[0] // 0) + ($wait->{2}[0] // 0) / 1e9;
        }
    }
    print "retry delay $delay\n";
}

my $target = $ARGV[0] // 'localhost:8400';
my ($a, $b) = eval { embed($target, 'A man eats.', 'Someone has a meal.') };
if ($@) {
    explain($@);
    exit 1;
}
printf "cosine %.4f\n", dot($a, $b) / sqrt(dot($a, $a) * dot($b, $b));
eval { embed($target, 'word ' x 1000); 1 } or explain($@);
