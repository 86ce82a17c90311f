//! Starts gatewren.

use std::process::ExitCode;

/// Releases are built with musl. Its own allocator is slow and uses one lock for all threads. Every release build
/// has this one, so that measurements of any build hold for the release.
#[cfg(not(debug_assertions))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    gatewren_cli::main()
}
