//! Generates the client from the contract. Status is the one of tonic-types.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tonic_build::configure()
        .build_server(false)
        .extern_path(".google.rpc.Status", "::tonic_types::Status")
        .compile_protos(
            &["../../../proto/encoderd/v1/encoder.proto"],
            &["../../../proto"],
        )?;
    Ok(())
}
