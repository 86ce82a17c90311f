//! How a benchmark begins: as itself, as its own anchor, or not at all.

use std::io::{Write as _, stderr, stdout};
use std::process::ExitCode;

use super::Error;
use super::args::Common;
use super::bare;

/// Runs a benchmark of this name; what it measured is printed.
pub fn start(
    name: &str,
    args: &Common,
    measure: impl AsyncFnOnce() -> Result<String, Error>,
) -> ExitCode {
    match run(name, args, measure) {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            // Nothing better is left when even this cannot be written.
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
        // `cargo test --all-targets` comes by here too.
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
