//! Embeds two texts, prints their cosine, then what the error of a text that
//! is too long says. README.md tells how to run this.
//!
//!     embed [HOST:PORT]

use std::collections::BTreeMap;
use std::time::Duration;

use pb::embedding::Values;
use pb::encoder_client::EncoderClient;
use pb::input::Content;
use tonic::transport::{Channel, Endpoint};
use tonic_types::StatusExt;

mod pb {
    tonic::include_proto!("encoderd.v1");
}

type Client = EncoderClient<Channel>;

async fn embed(
    client: &mut Client,
    texts: &[String],
) -> Result<Vec<Vec<f32>>, tonic::Status> {
    let inputs = texts.iter().map(|text| pb::Input {
        content: Some(Content::Text(text.clone())),
    });
    let request = pb::EmbedRequest {
        inputs: inputs.collect(),
        ..Default::default()
    };
    let answer = client.embed(request).await?.into_inner();
    let embeddings = answer.embeddings.into_iter();
    Ok(embeddings
        .map(|embedding| match embedding.values {
            Some(Values::Floats(floats)) => floats.values,
            _ => vec![],
        })
        .collect())
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(x, y)| *x as f64 * *y as f64).sum()
}

/// InvalidArgument as the other languages write it.
fn code_name(code: tonic::Code) -> String {
    let mut name = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

/// Prints an error with its reason, metadata and retry delay.
fn explain(error: &tonic::Status) {
    println!("{}: {}", code_name(error.code()), error.message());
    let details = error.get_error_details();
    if let Some(info) = details.error_info() {
        println!("reason {}", info.reason);
        for (key, value) in info.metadata.iter().collect::<BTreeMap<_, _>>() {
            println!("{key} {value}");
        }
    }
    match details.retry_info().and_then(|retry| retry.retry_delay) {
        Some(delay) => println!("retry delay {:.3} s", delay.as_secs_f64()),
        None => println!("retry delay none"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args().nth(1);
    let target = target.unwrap_or("localhost:8400".to_string());
    let channel = Endpoint::from_shared(format!("http://{target}"))?
        .timeout(Duration::from_secs(30))
        .connect_lazy();
    let mut client =
        EncoderClient::new(channel).max_decoding_message_size(16 << 20);
    let texts = ["A man eats.", "Someone has a meal."].map(String::from);
    let found = match embed(&mut client, &texts).await {
        Ok(found) => found,
        Err(error) => {
            explain(&error);
            std::process::exit(1);
        }
    };
    let (a, b) = (&found[0], &found[1]);
    let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    println!("cosine {cosine:.4}");
    if let Err(error) = embed(&mut client, &["word ".repeat(1000)]).await {
        explain(&error);
    }
    Ok(())
}
