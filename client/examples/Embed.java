// Embeds two texts, prints their cosine, then what the error of a text that is
// too long says. README.md tells how to generate code and run this.
//   java Embed [HOST:PORT]
import com.google.protobuf.Any;
import com.google.protobuf.Duration;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import encoderd.v1.EmbedRequest;
import encoderd.v1.EmbedResponse;
import encoderd.v1.EncoderGrpc;
import encoderd.v1.Input;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.util.List;
import java.util.Locale;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

public class Embed {
  public static void main(String[] args) throws Exception {
    String target = args.length > 0 ? args[0] : "localhost:8400";
    ManagedChannel channel =
        ManagedChannelBuilder.forTarget(target)
            .usePlaintext()
            .maxInboundMessageSize(16 << 20)
            .build();
    EncoderGrpc.EncoderBlockingStub stub = EncoderGrpc.newBlockingStub(channel);
    int exit = 0;
    try {
      System.out.printf(Locale.ROOT, "cosine %.4f%n", cosine(stub));
      try {
        embed(stub, "word ".repeat(1000));
      } catch (StatusRuntimeException error) {
        explain(error);
      }
    } catch (StatusRuntimeException error) {
      explain(error);
      exit = 1;
    }
    channel.shutdownNow().awaitTermination(5, TimeUnit.SECONDS);
    System.exit(exit);
  }

  private static EmbedResponse embed(
      EncoderGrpc.EncoderBlockingStub stub, String... texts) {
    EmbedRequest.Builder request = EmbedRequest.newBuilder();
    for (String text : texts) {
      request.addInputs(Input.newBuilder().setText(text));
    }
    return stub.withDeadlineAfter(30, TimeUnit.SECONDS).embed(request.build());
  }

  private static double cosine(EncoderGrpc.EncoderBlockingStub stub) {
    EmbedResponse answer = embed(stub, "A man eats.", "Someone has a meal.");
    List<Float> a = answer.getEmbeddings(0).getFloats().getValuesList();
    List<Float> b = answer.getEmbeddings(1).getFloats().getValuesList();
    return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
  }

  private static double dot(List<Float> a, List<Float> b) {
    double sum = 0;
    for (int i = 0; i < a.size(); ++i) sum += (double) a.get(i) * b.get(i);
    return sum;
  }

  /** Prints an error with its reason, metadata and retry delay. */
  private static void explain(StatusRuntimeException error) throws Exception {
    System.out.println(error.getMessage());
    String delay = "none";
    for (Any detail : StatusProto.fromThrowable(error).getDetailsList()) {
      if (detail.is(ErrorInfo.class)) {
        ErrorInfo info = detail.unpack(ErrorInfo.class);
        System.out.println("reason " + info.getReason());
        new TreeMap<>(info.getMetadataMap())
            .forEach((key, value) -> System.out.println(key + " " + value));
      } else if (detail.is(RetryInfo.class)) {
        Duration wait = detail.unpack(RetryInfo.class).getRetryDelay();
        delay =
            String.format(
                Locale.ROOT, "%.3f s", wait.getSeconds() + wait.getNanos() / 1e9);
      }
    }
    System.out.println("retry delay " + delay);
  }
}
