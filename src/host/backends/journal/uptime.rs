//! When the host was up, and how each of its boots ended.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::helper_client::Operation;
use gatewren_base::sys::{moment_ms, neutralise, now_ms};

use super::super::error::BackendError;
use super::super::request::ask;
use super::boots::Boot;
use super::view::{JournalView, QUESTION_TIME};

/// How long before the last line of a boot the journal's daemon may have ended. Its last lines are written while the
/// host shuts down.
const SHUTDOWN_MS: u64 = 90_000;

/// The maximum length of a reason in characters; a longer one is cut.
const REASON_CHARS: usize = 200;

/// The host's boots that the journal still has, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct UptimeHistory {
    /// The time of the oldest line of these boots, RFC 3339.
    pub since: String,
    /// How much of the time since then the host was up, in percent.
    pub up_percent: f64,
    /// How many boots ended without a shutdown: by a crash, a reset or a power failure.
    pub unclean: usize,
    /// The boots, newest first.
    pub boots: Vec<BootRun>,
}

/// One boot, from its first line in the journal to its last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BootRun {
    /// 0 for the current boot, -1 for the one before, and so on.
    pub boot: i64,
    /// The time of its first line, RFC 3339.
    pub from: String,
    /// The time of its last line; absent for the current boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// How long the host was up, in seconds.
    pub up_s: u64,
    /// How long the host was down until the next boot, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down_s: Option<u64>,
    /// How it ended.
    pub end: BootEnd,
    /// The line about the shutdown, such as `System is rebooting.`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How a boot ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BootEnd {
    /// It has not ended.
    Running,
    /// By a shutdown or a restart.
    Clean,
    /// Without a shutdown: a crash, a reset or a power failure.
    Unclean,
}

/// A line about a shutdown, as `journalctl -o json` prints it.
#[derive(Debug, Deserialize)]
struct ShutdownLine {
    #[serde(rename = "_BOOT_ID")]
    boot_id: String,
    #[serde(rename = "__REALTIME_TIMESTAMP")]
    time_us: String,
    #[serde(rename = "MESSAGE")]
    message: String,
}

impl JournalView {
    /// Returns the newest boots of the host, at most `limit`; `None` if the journal has no boots.
    ///
    /// # Errors
    /// When the caller may not see the host, and journalctl's errors.
    pub async fn uptime_history(
        &self,
        limit: usize,
    ) -> Result<Option<UptimeHistory>, BackendError> {
        let mut all = self.boots(None).await?;
        let operation = Operation::HostUptimeHistory {};
        let lines = ask(&self.helper, operation, QUESTION_TIME, &self.reference).await?;
        all.truncate(limit);
        Ok(history(&all, &lines, now_ms()))
    }
}

/// Joins the boots, newest first, with the lines about shutdowns.
fn history(boots: &[Boot], lines: &str, now: u64) -> Option<UptimeHistory> {
    let mut shutdowns: BTreeMap<String, Vec<ShutdownLine>> = BTreeMap::new();
    for line in lines.lines() {
        if let Ok(line) = serde_json::from_str::<ShutdownLine>(line) {
            shutdowns
                .entry(line.boot_id.clone())
                .or_default()
                .push(line);
        }
    }
    let mut runs: Vec<BootRun> = Vec::with_capacity(boots.len());
    let (mut up_ms, mut next_from) = (0, None);
    for boot in boots {
        let from = moment_ms(&boot.first)?;
        let is_current = boot.boot == 0;
        let to = if is_current {
            now
        } else {
            moment_ms(&boot.last)?
        };
        let (end, reason) = match shutdowns.get(&boot.id) {
            _ if is_current => (BootEnd::Running, None),
            Some(lines) => end_of(lines, to),
            None => (BootEnd::Unclean, None),
        };
        up_ms += to.saturating_sub(from);
        runs.push(BootRun {
            boot: boot.boot,
            from: boot.first.clone(),
            to: (!is_current).then(|| boot.last.clone()),
            up_s: to.saturating_sub(from) / 1000,
            down_s: next_from.map(|next: u64| next.saturating_sub(to) / 1000),
            end,
            reason,
        });
        next_from = Some(from);
    }
    let since = boots.last()?.first.clone();
    Some(UptimeHistory {
        up_percent: percent(up_ms, now.saturating_sub(moment_ms(&since)?)),
        since,
        unclean: runs
            .iter()
            .filter(|run| run.end == BootEnd::Unclean)
            .count(),
        boots: runs,
    })
}

/// Returns how a boot ended whose last line was written at `to`, and the line that announced it.
fn end_of(lines: &[ShutdownLine], to: u64) -> (BootEnd, Option<String>) {
    let at_end = |line: &&ShutdownLine| {
        let time_us: u64 = line.time_us.parse().unwrap_or_default();
        (time_us / 1000).saturating_add(SHUTDOWN_MS) >= to
    };
    let mut last = lines.iter().filter(at_end).peekable();
    if last.peek().is_none() {
        return (BootEnd::Unclean, None);
    }
    let announced = last.find(|line| line.message.starts_with("System is "));
    let reason = announced.map(|line| {
        let text: String = line.message.chars().take(REASON_CHARS).collect();
        neutralise(&text).into_owned()
    });
    (BootEnd::Clean, reason)
}

/// The share in percent, with two decimals.
#[expect(clippy::cast_precision_loss, reason = "milliseconds of centuries fit")]
fn percent(part: u64, whole: u64) -> f64 {
    let share = part as f64 / (whole.max(1) as f64);
    ((share * 10_000.0).round() / 100.0).min(100.0)
}

#[cfg(test)]
mod tests {
    use super::BootEnd::{Clean, Running, Unclean};
    use super::*;

    fn a_boot(boot: i64, first: &str, last: &str) -> Boot {
        Boot {
            boot,
            id: format!("{:032x}", boot.unsigned_abs()),
            first: format!("2026-07-28T{first}.000Z"),
            last: format!("2026-07-28T{last}.000Z"),
        }
    }

    fn line(boot: i64, time: &str, message: &str) -> String {
        let time = moment_ms(&format!("2026-07-28T{time}Z")).unwrap() * 1000;
        let id = format!("{:032x}", boot.unsigned_abs());
        format!(
            r#"{{"_BOOT_ID":"{id}","__REALTIME_TIMESTAMP":"{time}","MESSAGE":"{message}","__CURSOR":"s"}}"#
        )
    }

    #[test]
    fn a_boot_without_a_shutdown_at_its_end_is_unclean() {
        let all = [
            a_boot(0, "08:00:00", "08:59:00"),
            a_boot(-1, "06:00:00", "07:50:00"),
            a_boot(-2, "04:00:00", "05:00:00"),
            a_boot(-3, "03:00:00", "03:59:50"),
        ];
        let lines = [
            line(-3, "03:59:49", "System is rebooting."),
            line(-3, "03:59:50", "Journal stopped"),
            // The journal's daemon restarted; the boot went on for 50 minutes.
            line(-2, "04:10:00", "Journal stopped"),
            line(-1, "07:49:59", "Journal stopped"),
            line(0, "08:00:01", "Journal stopped"),
            "no JSON".to_owned(),
        ];
        let now = moment_ms("2026-07-28T09:00:00Z").unwrap();
        let got = history(&all, &lines.join("\n"), now).unwrap();
        let ends: Vec<_> = got.boots.iter().map(|run| run.end).collect();
        assert_eq!(ends, [Running, Clean, Unclean, Clean]);
        assert_eq!(got.boots[3].reason.as_deref(), Some("System is rebooting."));
        let times: Vec<_> = got.boots.iter().map(|run| (run.up_s, run.down_s)).collect();
        assert_eq!(
            times,
            [
                (3600, None),
                (6600, Some(600)),
                (3600, Some(3600)),
                (3590, Some(10))
            ]
        );
        assert_eq!((got.unclean, got.up_percent), (1, 80.51));
        assert_eq!(got.since, "2026-07-28T03:00:00.000Z");
        assert_eq!(history(&[], "", now), None);
    }
}
