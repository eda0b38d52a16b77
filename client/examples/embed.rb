# Embeds two texts, prints their cosine, then what the error of a text that is
# too long says. README.md tells how to generate code and run this.
#   ruby -Igen/ruby client/examples/embed.rb [HOST:PORT]
require 'google/protobuf/well_known_types'
require 'encoderd/v1/encoder_services_pb'
require 'google/rpc/error_details_pb'
require 'google/rpc/status_pb'

def embed(stub, texts)
  inputs = texts.map { |text| Encoderd::V1::Input.new(text: text) }
  request = Encoderd::V1::EmbedRequest.new(inputs: inputs)
  answer = stub.embed(request, deadline: Time.now + 30)
  answer.embeddings.map { |embedding| embedding.floats.values.to_a }
end

def dot(a, b)
  a.zip(b).sum { |x, y| x * y }
end

def code_name(code)
  GRPC::Core::StatusCodes.constants.find do |name|
    GRPC::Core::StatusCodes.const_get(name) == code
  end
end

# Prints an error with its reason, metadata and retry delay.
def explain(error)
  puts "#{code_name(error.code)}: #{error.details}"
  bytes = error.metadata['grpc-status-details-bin']
  details = bytes ? Google::Rpc::Status.decode(bytes).details : []
  delay = nil
  details.each do |detail|
    if (info = detail.unpack(Google::Rpc::ErrorInfo))
      puts "reason #{info.reason}"
      info.metadata.to_h.sort.each { |key, value| puts "#{key} #{value}" }
    elsif (retry_info = detail.unpack(Google::Rpc::RetryInfo))
      delay = retry_info.retry_delay
    end
  end
  seconds = delay && format('%.3f s', delay.seconds + delay.nanos / 1e9)
  puts "retry delay #{seconds || 'none'}"
end

stub = Encoderd::V1::Encoder::Stub.new(
  ARGV[0] || 'localhost:8400', :this_channel_is_insecure,
  channel_args: { 'grpc.max_receive_message_length' => 16 << 20 }
)
begin
  a, b = embed(stub, ['A man eats.', 'Someone has a meal.'])
rescue GRPC::BadStatus => error
  explain(error)
  exit 1
end
puts format('cosine %.4f', dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b)))
begin
  embed(stub, ['word ' * 1000])
rescue GRPC::BadStatus => error
  explain(error)
end
