//! gatewren on a real pseudo-terminal, which script(1) makes.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::machine::{IN_TIME, wait_until};
use super::server::Directory;

/// A program on a terminal.
pub struct Terminal {
    script: Child,
    typescript: PathBuf,
    _home: Directory,
}

impl Terminal {
    /// Starts `gatewren` with these words on a terminal of this width; `None` without script(1).
    pub fn start(columns: usize, env: &[(&str, &str)], words: &[&str]) -> Option<Self> {
        let home = Directory::new();
        let typescript = home.join("typescript");
        let program = env!("CARGO_BIN_EXE_gatewren");
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let line = format!(
            "stty rows 40 cols {columns}; exec {program} {}",
            quoted.join(" ")
        );
        let mut script = Command::new("script");
        script
            .args(["-q", "-e", "-f", "-c", &line])
            .arg(&typescript);
        script
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .envs(env.iter().copied());
        script.stdin(Stdio::piped()).stdout(Stdio::null());
        Some(Self {
            script: script.spawn().ok()?,
            typescript,
            _home: home,
        })
    }

    /// Returns what was written until now, without the lines of script itself and the carriage returns.
    pub fn text(&self) -> String {
        let bytes = std::fs::read(&self.typescript).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).replace('\r', "");
        let lines = text.lines().filter(|line| !line.starts_with("Script "));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Waits for the end of the program; returns its text and its exit code.
    pub fn end(mut self) -> (String, Option<i32>) {
        wait_until("it ends", IN_TIME, || {
            self.script.try_wait().unwrap().is_some()
        });
        let status = self.script.wait().unwrap();
        assert_eq!(status.signal(), None);
        (self.text(), status.code())
    }

    /// Presses Ctrl-C, and waits for the end.
    pub fn interrupt(self) -> String {
        let children = format!("/proc/{0}/task/{0}/children", self.script.id());
        let child = std::fs::read_to_string(children).unwrap();
        let child: i32 = child.split_whitespace().next().unwrap().parse().unwrap();
        kill(Pid::from_raw(child), Signal::SIGINT).unwrap();
        self.end().0
    }
}

/// Removes the control sequences of colors.
pub fn without_colors(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once('m').map_or(part, |(_, rest)| rest)
    })
}

/// Returns the longest line.
pub fn widest(text: &str) -> usize {
    let text = without_colors(text);
    text.lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
}
