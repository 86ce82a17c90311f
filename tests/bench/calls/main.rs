//! Calls per second, CPU per call and latency of gatewren, as shares of what hyper alone does.
//!
//! ```text
//! cargo bench --bench calls                   # a Markdown table, three to four minutes
//! cargo bench --bench calls -- --json         # the same as one JSON object
//! cargo bench --bench calls -- --rows whoami --connections 16 --rounds 3
//! cargo bench --bench calls -- --binary FILE  # another build, such as the one that ships
//! ```
//!
//! The anchor is hyper on a single-threaded runtime that reads the request's body and answers a fixed one
//! as long as gatewren's. It is measured right before and right after each sample of gatewren, over TLS
//! with the same certificate, and only the ratio counts: absolute figures swing with whatever else the
//! machine does. Every reply is checked for its status, its id and that it is a result; one wrong reply
//! ends the run. Limits on calls are set as high as the settings allow; everything else is as it ships,
//! the audit included, but for the log, which is at `warn`.

mod args;
mod bare;
mod connection;
mod load;
mod machine;
mod report;
mod rounds;
mod rows;
mod servers;
mod spread;
mod wire;

use std::io::{Write as _, stderr, stdout};
use std::process::ExitCode;

use clap::Parser as _;

use args::Args;

/// Whatever ends a run.
type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            // Nothing better is left when even this cannot be written.
            let _ = writeln!(stderr(), "calls: {cause}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Error> {
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
            "calls: nothing measured; cargo bench --bench calls does"
        )?;
        return Ok(());
    }
    let report = runtime.block_on(rounds::measure(args))?;
    let text = if args.json {
        report.json()
    } else {
        report.markdown()
    };
    writeln!(stdout(), "{text}")?;
    Ok(())
}
