//! Starts gatewren.

use std::process::ExitCode;

/// Releases are built with musl, whose own allocator is slow and uses one lock for all threads. Every release
/// build has this one, so measurements of one hold for the others.
#[cfg(not(debug_assertions))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    gatewren::main()
}
