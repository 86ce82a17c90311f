//! Sockets that the service manager opened for us (`sd_listen_fds(3)`).

use std::os::fd::{FromRawFd as _, OwnedFd};

/// The sockets that were handed over to this process; none when nobody did.
///
/// Call it once: it takes ownership of them.
pub fn inherited_sockets() -> Vec<OwnedFd> {
    let Ok(numbers) = sd_notify::listen_fds() else {
        return Vec::new();
    };
    let take = |fd| {
        #[expect(
            unsafe_code,
            reason = "a descriptor that was handed over comes as a number"
        )]
        // SAFETY: LISTEN_PID names this process, so the number is open and nobody here owns it yet.
        unsafe {
            OwnedFd::from_raw_fd(fd)
        }
    };
    numbers.map(take).collect()
}
