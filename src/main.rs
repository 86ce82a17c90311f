//! Starts gatewren.

use std::process::ExitCode;

/// What ships is built with musl, whose own allocator is slow and takes one lock for all threads. Every release has it,
/// so that what is measured of one holds for what ships.
#[cfg(not(debug_assertions))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    gatewren::main()
}
