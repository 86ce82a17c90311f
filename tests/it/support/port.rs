//! A port that a test's server can leave and take again.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// The ports to choose from. All are below those that Linux gives to connections (from 32768 on), because a connection
/// of another test could otherwise take the port between two starts of a server.
const FIRST: u16 = 10_000;
const COUNT: u16 = 22_000;

/// Returns a port of 127.0.0.1 that nobody uses, a different one for each call.
pub fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    // Test programs that run side by side begin at different places.
    let start = std::process::id().wrapping_mul(97);
    loop {
        let offset = start.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed).into());
        let port = FIRST + u16::try_from(offset % u32::from(COUNT)).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
