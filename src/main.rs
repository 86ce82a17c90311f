//! Starts gatewren.

use std::process::ExitCode;

/// What ships is built with musl, whose own allocator is slow and takes one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    gatewren::main()
}
