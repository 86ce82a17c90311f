//! Sends log lines to the journal with their fields when systemd started this process, else to stderr.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::os::linux::fs::MetadataExt as _;
use std::path::Path;
use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing_journald::{Priority, PriorityMappings};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::panics::log_panics;
use crate::config::LogLevel;
use crate::sys::{now_ms, rfc3339, started_by_systemd, wants_color};

/// The syslog identifier: `journalctl -t gatewren`.
const IDENTIFIER: &str = "gatewren";

/// The prefix of our fields, such as `GATEWREN_TOOL=`.
const FIELD_PREFIX: &str = "GATEWREN";

/// The handle of the filter that sets the level.
static FILTER: OnceLock<reload::Handle<Targets, Registry>> = OnceLock::new();

const JOURNAL_SOCKET: &str = "/run/systemd/journal/socket";

/// Starts logging, including panics; further calls in the same process change nothing.
pub fn init(level: LogLevel) {
    log_panics();
    if wants_journal(&LogEnvironment::of_process()) {
        match tracing_journald::layer() {
            Ok(journal) => to_journal(journal, level),
            Err(cause) => {
                to_stderr(level);
                tracing::warn!(%cause, "connecting to the journal failed; logging to stderr");
            }
        }
    } else {
        to_stderr(level);
    }
}

/// Changes the log level. No effect before [`init`].
pub fn set_level(level: LogLevel) {
    if let Some(filter) = FILTER.get() {
        // Fails only if the log is gone, and then nothing is logged.
        let _ = filter.reload(targets(level));
    }
}

/// Returns a filter that [`set_level`] can replace. The first one counts, because its log does.
fn exchangeable(level: LogLevel) -> reload::Layer<Targets, Registry> {
    let (filter, handle) = reload::Layer::new(targets(level));
    let _ = FILTER.set(handle);
    filter
}

/// The facts that decide where lines go.
struct LogEnvironment {
    /// `JOURNAL_STREAM`: device and inode of the stream that systemd connected to the journal.
    stream: Option<String>,
    /// Device and inode of our stderr.
    stderr: Option<(u64, u64)>,
    /// Whether systemd started this process itself.
    started_by_systemd: bool,
    /// Whether the journal's socket exists.
    socket: bool,
    /// Whether stderr is a terminal.
    terminal: bool,
}

impl LogEnvironment {
    fn of_process() -> Self {
        Self {
            stream: std::env::var("JOURNAL_STREAM").ok(),
            stderr: stderr_identity().ok(),
            started_by_systemd: started_by_systemd(),
            socket: Path::new(JOURNAL_SOCKET).exists(),
            terminal: io::stderr().is_terminal(),
        }
    }
}

fn wants_journal(around: &LogEnvironment) -> bool {
    let stream = around.stream.as_deref().and_then(stream_identity);
    let stderr_is_journal = stream.is_some() && stream == around.stderr;
    stderr_is_journal || around.started_by_systemd && around.socket && !around.terminal
}

/// Parses `device:inode`, as described in systemd.exec(5).
fn stream_identity(text: &str) -> Option<(u64, u64)> {
    let (device, inode) = text.split_once(':')?;
    Some((device.parse().ok()?, inode.parse().ok()?))
}

fn stderr_identity() -> io::Result<(u64, u64)> {
    let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    let facts = stderr.metadata()?;
    Ok((facts.st_dev(), facts.st_ino()))
}

fn to_journal(journal: tracing_journald::Layer, level: LogLevel) {
    let journal = journal
        .with_syslog_identifier(IDENTIFIER.to_owned())
        .with_field_prefix(Some(FIELD_PREFIX.to_owned()))
        .with_priority_mappings(PriorityMappings {
            info: Priority::Informational,
            debug: Priority::Debug,
            ..PriorityMappings::new()
        });
    let layer = journal.with_filter(exchangeable(level));
    // Fails only if a log was set up before; that one stays.
    let _ = tracing_subscriber::registry().with(layer).try_init();
}

fn to_stderr(level: LogLevel) {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(wants_color(&io::stderr()))
        .with_target(false)
        .with_timer(Clock);
    let layer = lines.with_filter(exchangeable(level));
    // Fails only if a log was set up before; that one stays.
    let _ = tracing_subscriber::registry().with(layer).try_init();
}

/// Returns the filter: our own lines from `level` up, those of libraries only from warnings up.
fn targets(level: LogLevel) -> Targets {
    let ours = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    Targets::new()
        .with_default(ours.min(LevelFilter::WARN))
        .with_target(IDENTIFIER, ours)
}

/// Timestamps in the same format as everywhere else in gatewren.
struct Clock;

impl FormatTime for Clock {
    fn format_time(&self, w: &mut tracing_subscriber::fmt::format::Writer<'_>) -> std::fmt::Result {
        w.write_str(&rfc3339(now_ms()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn nowhere() -> LogEnvironment {
        LogEnvironment {
            stream: None,
            stderr: Some((8, 15)),
            started_by_systemd: false,
            socket: true,
            terminal: false,
        }
    }

    #[test]
    fn the_journal_is_chosen_when_our_stderr_is_its_stream() {
        assert!(!wants_journal(&nowhere()));
        for (stream, expected) in [
            ("8:15", true),
            ("8:16", false),
            ("9:15", false),
            ("815", false),
            (":", false),
            ("", false),
        ] {
            let around = LogEnvironment {
                stream: Some(stream.to_owned()),
                ..nowhere()
            };
            assert_eq!(wants_journal(&around), expected, "{stream:?}");
        }
    }

    #[test]
    fn the_journal_is_chosen_when_systemd_started_us_and_nobody_watches() {
        let service = || LogEnvironment {
            started_by_systemd: true,
            ..nowhere()
        };
        assert!(wants_journal(&service()));
        assert!(!wants_journal(&LogEnvironment {
            socket: false,
            ..service()
        }));
        assert!(!wants_journal(&LogEnvironment {
            terminal: true,
            ..service()
        }));
    }

    #[test]
    fn our_stderr_is_known_to_the_kernel() {
        assert!(stderr_identity().is_ok());
    }

    #[test]
    fn libraries_are_quieter_than_we_are() {
        let buffer = LogBuffer::default();
        let lines = tracing_subscriber::fmt::layer()
            .with_writer({
                let buffer = buffer.clone();
                move || buffer.clone()
            })
            .with_ansi(false)
            .with_timer(Clock)
            .with_filter(targets(LogLevel::Debug));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            tracing::debug!(target: "gatewren::http", tool = "x", "ours");
            tracing::trace!(target: "gatewren::http", "too much");
            tracing::info!(target: "h2", "theirs");
            tracing::warn!(target: "h2", "their warning");
        });
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        assert!(
            text.contains("DEBUG gatewren::http: ours tool=\"x\""),
            "{text}"
        );
        assert!(text.contains("their warning"), "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert_eq!(
            text.find('T'),
            Some(10),
            "a line begins with its time: {text}"
        );
    }

    /// The written output, kept for inspection.
    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
