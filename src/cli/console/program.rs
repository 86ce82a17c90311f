//! Runs programs of the host, with a timeout and a limit on their output.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// The timeout of a program; then it is killed.
const WITHIN: Duration = Duration::from_secs(15);

/// The maximum number of bytes of output to read.
const MOST: u64 = 256 << 10;

/// Returns a program's standard output, whatever its exit code; `None` if it is missing or timed out.
pub async fn read_output(program: &str, arguments: &[&str]) -> Option<String> {
    let mut child = Command::new(program)
        .args(arguments)
        // The output is parsed, so it must be in English.
        .env("LC_ALL", "C")
        .env("SYSTEMD_PAGER", "")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .ok()?;
    let output = child.stdout.take()?;
    let read = async {
        let mut text = Vec::new();
        output.take(MOST).read_to_end(&mut text).await.ok()?;
        child.wait().await.ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    };
    tokio::time::timeout(WITHIN, read).await.ok().flatten()
}

/// Whether a program exited with success.
pub async fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let ended = tokio::time::timeout(WITHIN, command.status()).await;
    ended.is_ok_and(|status| status.is_ok_and(|status| status.success()))
}

/// Whether one of the usual directories has this program.
pub fn is_there(program: &str) -> bool {
    const PLACES: [&str; 6] = [
        "/usr/local/sbin",
        "/usr/local/bin",
        "/usr/sbin",
        "/usr/bin",
        "/sbin",
        "/bin",
    ];
    PLACES
        .iter()
        .any(|place| std::path::Path::new(place).join(program).exists())
}
