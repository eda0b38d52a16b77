// Embeds two texts, prints their cosine, then what the error of a text that is
// too long says. README.md tells how to generate code and run this.
//
//	embed [HOST:PORT]
package main

import (
	"context"
	"encoderd/v1"
	"fmt"
	"math"
	"os"
	"sort"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

func embed(client encoderdv1.EncoderClient, texts ...string) (
	[]*encoderdv1.Embedding, error) {
	request := &encoderdv1.EmbedRequest{}
	for _, text := range texts {
		request.Inputs = append(request.Inputs, &encoderdv1.Input{
			Content: &encoderdv1.Input_Text{Text: text}})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	answer, err := client.Embed(ctx, request)
	return answer.GetEmbeddings(), err
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// codeName gives InvalidArgument as the other languages write it.
func codeName(code codes.Code) string {
	var name strings.Builder
	for i, letter := range code.String() {
		if i > 0 && letter >= 'A' && letter <= 'Z' {
			name.WriteByte('_')
		}
		name.WriteRune(letter)
	}
	return strings.ToUpper(name.String())
}

// explain prints an error with its reason, metadata and retry delay.
func explain(err error) {
	said := status.Convert(err)
	fmt.Printf("%s: %s\n", codeName(said.Code()), said.Message())
	delay := "none"
	for _, detail := range said.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			fmt.Println("reason", detail.Reason)
			keys := []string{}
			for key := range detail.Metadata {
				keys = append(keys, key)
			}
			sort.Strings(keys)
			for _, key := range keys {
				fmt.Println(key, detail.Metadata[key])
			}
		case *errdetails.RetryInfo:
			seconds := detail.RetryDelay.AsDuration().Seconds()
			delay = fmt.Sprintf("%.3f s", seconds)
		}
	}
	fmt.Println("retry delay", delay)
}

func main() {
	target := "localhost:8400"
	if len(os.Args) > 1 {
		target = os.Args[1]
	}
	connection, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer connection.Close()
	client := encoderdv1.NewEncoderClient(connection)
	found, err := embed(client, "A man eats.", "Someone has a meal.")
	if err != nil {
		explain(err)
		os.Exit(1)
	}
	a, b := found[0].GetFloats().Values, found[1].GetFloats().Values
	fmt.Printf("cosine %.4f\n", dot(a, b)/math.Sqrt(dot(a, a)*dot(b, b)))
	if _, err = embed(client, strings.Repeat("word ", 1000)); err != nil {
		explain(err)
	}
}
