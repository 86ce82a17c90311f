//! Programs of the box that are asked something: bounded in time and in what they say.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// So long a program may take; then it is killed.
const WITHIN: Duration = Duration::from_secs(15);

/// So much of what it says is read.
const MOST: u64 = 256 << 10;

/// What a program printed on standard output, whatever its exit code; nothing if it is not there, or took too long.
pub async fn printed(program: &str, arguments: &[&str]) -> Option<String> {
    let mut child = Command::new(program)
        .args(arguments)
        // Words that are looked for, in the language in which they are looked for.
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

/// Whether a program ended well.
pub async fn done(program: &str, arguments: &[&str]) -> bool {
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

/// Whether one of the places where programs are has this one.
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
