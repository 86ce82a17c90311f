//! The entry point of a benchmark: it measures, runs as its own anchor, or does nothing.

use std::io::{Write as _, stderr, stdout};
use std::process::ExitCode;

use super::Error;
use super::args::Common;
use super::bare;

/// Runs a benchmark with this name, and prints its result.
pub fn start(
    name: &str,
    args: &Common,
    measure: impl AsyncFnOnce() -> Result<String, Error>,
) -> ExitCode {
    match run(name, args, measure) {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            // If even this write fails, there is nothing left to do.
            let _ = writeln!(stderr(), "{name}: {cause}");
            ExitCode::FAILURE
        }
    }
}

fn run(
    name: &str,
    args: &Common,
    measure: impl AsyncFnOnce() -> Result<String, Error>,
) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if let Some(size) = args.bare {
        return runtime.block_on(bare::serve(size, args.cert.as_deref(), args.key.as_deref()));
    }
    if !args.bench {
        // `cargo test --all-targets` starts benchmarks too.
        writeln!(
            stderr(),
            "{name}: nothing measured; cargo bench --bench {name} does"
        )?;
        return Ok(());
    }
    let text = runtime.block_on(measure())?;
    writeln!(stdout(), "{text}")?;
    Ok(())
}
