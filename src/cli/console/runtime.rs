//! Builds the asynchronous runtime for the number of cores.

use std::io;

use tokio::runtime::{Builder, Runtime};

use gatewren_base::sys::raise_descriptor_limit;

/// With at most this many cores, one thread serves more calls a second than several that wake each other.
const FEW_CORES: usize = 2;

/// Shuts down a runtime without waiting for reads of standard input, which cannot be interrupted.
pub fn leave(runtime: Runtime) {
    runtime.shutdown_background();
}

/// A runtime with one thread, for a single client.
pub fn small() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// A runtime with one thread on a small machine, and one a core on a larger one.
pub fn build() -> io::Result<Runtime> {
    let descriptors = raise_descriptor_limit();
    tracing::debug!(
        descriptors,
        "the limit of file descriptors, one for each connection"
    );
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut builder = if cores <= FEW_CORES {
        Builder::new_current_thread()
    } else {
        Builder::new_multi_thread()
    };
    builder.enable_all().build()
}
