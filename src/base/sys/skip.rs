//! Reports tests that cannot run here.

use std::fs::OpenOptions;
use std::io::Write as _;

/// Reports the running test as skipped, and adds it to the file named by `GATEWREN_SKIPPED`.
///
/// # Panics
/// If the file cannot be written: the test would be counted as passed.
#[expect(
    clippy::expect_used,
    clippy::print_stderr,
    reason = "only tests use it"
)]
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let line = format!("SKIPPED: {}: {reason}\n", thread.name().unwrap_or("?"));
    eprint!("{line}");
    if let Ok(file) = std::env::var("GATEWREN_SKIPPED") {
        let file = OpenOptions::new().create(true).append(true).open(file);
        let mut file = file.expect("open the file that lists skipped tests");
        file.write_all(line.as_bytes())
            .expect("write to the file that lists skipped tests");
    }
}
