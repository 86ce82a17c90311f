//! The limit of file descriptors of a process: high for a server, the usual number for commands.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The limit that programs are used to; some visit every number below the limit.
const USUAL: u64 = 1_024;

/// Raises this process's descriptor limit to the maximum; returns it. Each connection takes a descriptor.
pub fn raise_descriptor_limit() -> u64 {
    set(|hard| hard)
}

/// Restores the usual limit, which commands inherit.
pub fn usual_descriptor_limit() -> u64 {
    set(|hard| hard.min(USUAL))
}

fn set(choose: impl FnOnce(u64) -> u64) -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return USUAL;
    };
    let chosen = choose(hard);
    match setrlimit(Resource::RLIMIT_NOFILE, chosen, hard) {
        Ok(()) => chosen,
        Err(_) => soft,
    }
}
