//! How many descriptors a process may have: many for a server, the usual number for commands.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// What programs are used to; some look at every number below the limit.
const USUAL: u64 = 1_024;

/// Lets this process have as many descriptors as it may; the number. Each connection takes one.
pub fn raise_descriptor_limit() -> u64 {
    set(|hard| hard)
}

/// Goes back to the usual limit, which commands inherit.
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
