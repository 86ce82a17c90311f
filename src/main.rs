//! Starts gatewren.

use std::process::ExitCode;

fn main() -> ExitCode {
    gatewren::main()
}
