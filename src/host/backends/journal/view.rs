//! The journals that a caller may access, through the helper.

use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::helper_client::{
    ContainerRef, HelperClient, LogCursor, LogOrder, LogQuery, Operation, OperationLimits,
    SystemRecord, UnitName,
};
use gatewren_base::config::Reach;

use super::super::access_filter::{AccessFilter, unmask_error};
use super::super::error::{BackendError, ErrorKind};
use super::super::records::{RecordOwner, RecordReader};
use super::super::request::ask;
use super::boots::{Boot, boot_us, boots, current_boot};
use super::kernel_ring::{kernel_lines, serial};
use super::line::{LogLine, PAGE_BYTES};
use super::reader::{OutputLineReader, printed_at_most};

/// The timeout of a search; lines found until then are returned.
const SEARCH_TIME: Duration = Duration::from_secs(40);

/// The timeout of a short query.
pub(super) const QUESTION_TIME: Duration = Duration::from_secs(20);

/// The maximum number of bytes read for one answer; lines found until then are returned.
const OUTPUT_BYTES: u64 = 64 << 20;

/// The path of this host's id (machine-id(5)).
const MACHINE_ID: &str = "/etc/machine-id";

/// Access to journals; queries need a view.
#[derive(Debug, Clone)]
pub struct Journal {
    helper: HelperClient,
}

/// The journals that a caller may access.
#[derive(Debug, Clone)]
pub struct JournalView {
    pub(super) helper: HelperClient,
    pub(super) access: AccessFilter,
    pub(super) reference: String,
}

/// A search, and the maximum number of lines.
#[derive(Debug, Clone)]
pub struct LogSearch {
    /// The container with the journal; the host if absent.
    pub container: Option<ContainerRef>,
    /// Which lines.
    pub query: LogQuery,
    /// The maximum number of lines.
    pub most: usize,
}

/// A page of log lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LogPage {
    /// The lines, oldest first.
    pub lines: Vec<LogLine>,
    /// Whether there are more in the requested direction.
    pub truncated: bool,
    /// The cursor of the first line; older lines are before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_cursor: Option<LogCursor>,
    /// The cursor of the last line; newer lines are after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_cursor: Option<LogCursor>,
}

impl LogPage {
    fn of(lines: Vec<LogLine>, truncated: bool) -> Self {
        let cursor = |line: Option<&LogLine>| line.map(|line| line.cursor.clone());
        Self {
            start_cursor: cursor(lines.first()),
            end_cursor: cursor(lines.last()),
            truncated,
            lines,
        }
    }
}

impl Journal {
    /// Returns access through this helper.
    pub fn new(helper: HelperClient) -> Self {
        Self { helper }
    }

    /// Whether journalctl is installed.
    pub fn is_available() -> bool {
        Path::new("/usr/bin/journalctl").exists()
    }

    /// Returns the journals that a caller may access; `reference` identifies its calls in the
    /// helper's log.
    pub fn view_for(&self, reach: &Reach, reference: &str) -> JournalView {
        JournalView {
            helper: self.helper.clone(),
            access: AccessFilter::of(reach),
            reference: reference.to_owned(),
        }
    }
}

impl JournalView {
    /// Returns matching lines.
    ///
    /// # Errors
    /// When the host or the container is inaccessible, and when the container is not running or has
    /// no journal. Also journalctl's errors, such as an invalid pattern.
    pub async fn search(&self, search: &LogSearch) -> Result<LogPage, BackendError> {
        let (mut lines, truncated) = match self.stored_lines(search).await {
            Ok(found) => found,
            Err(error) if search.query.kernel && error.kind != ErrorKind::Refused => {
                return self.kernel_messages(search).await.ok_or(error);
            }
            Err(error) => return Err(error),
        };
        if search.query.order == LogOrder::Older {
            lines.reverse();
        }
        Ok(LogPage::of(lines, truncated))
    }

    /// Returns matching lines of the journal, newest first unless newer ones are asked for, and whether there are more.
    async fn stored_lines(&self, search: &LogSearch) -> Result<(Vec<LogLine>, bool), BackendError> {
        let found = self.lines(search, SEARCH_TIME).await?;
        if found.0.is_empty() {
            self.require_lines(search.container.as_ref()).await?;
        }
        Ok(found)
    }

    /// Returns the kernel's messages from its own ring, which has only those of this boot. `None` if it cannot be read,
    /// for a cursor of a journal, and for a search by a pattern, which only a journal can do.
    async fn kernel_messages(&self, search: &LogSearch) -> Option<LogPage> {
        let query = &search.query;
        let is_now = query.boot.as_ref().is_none_or(|boot| boot.as_str() == "0");
        let is_elsewhere = |cursor| serial(cursor).is_none();
        let is_elsewhere = query.cursor.as_ref().is_some_and(is_elsewhere);
        if search.container.is_some() || query.grep.is_some() || !is_now || is_elsewhere {
            return None;
        }
        self.access.host().ok()?;
        let records = RecordReader {
            helper: &self.helper,
            reference: &self.reference,
        };
        let ring = records.read(RecordOwner::Host, SystemRecord::KernelMessages);
        let bytes = ring.await.ok().flatten()?.bytes;
        let machine = machine_id();
        let is_shown = |fields: &Map<String, Value>| self.shows(fields, Some(&machine));
        let (lines, truncated) = kernel_lines(&bytes, boot_us(), query, search.most, is_shown);
        Some(LogPage::of(lines, truncated))
    }

    /// Waits for the next matching line; `None` if none is written in time.
    ///
    /// # Errors
    /// As for a search.
    pub async fn wait(
        &self,
        search: LogSearch,
        time: Duration,
    ) -> Result<Option<LogLine>, BackendError> {
        let search = LogSearch {
            query: LogQuery {
                order: LogOrder::Follow,
                ..search.query
            },
            most: 1,
            ..search
        };
        let (lines, _) = self.lines(&search, time).await?;
        Ok(lines.into_iter().next())
    }

    /// Returns the boots in a journal, newest first.
    ///
    /// # Errors
    /// As for a search.
    pub async fn boots(&self, container: Option<&ContainerRef>) -> Result<Vec<Boot>, BackendError> {
        let (operation, asked) = match container {
            None => {
                self.access.host()?;
                (Operation::HostBoots {}, None)
            }
            Some(name) => {
                let container = self.access.name(name);
                let operation = Operation::ContainerBoots {
                    container: container.clone(),
                };
                (operation, Some(container))
            }
        };
        let answer = ask(&self.helper, operation, QUESTION_TIME, &self.reference).await;
        let boots = match restore_name(container, asked.as_ref(), answer) {
            Ok(text) => boots(&text),
            Err(error) if container.is_none() && error.kind == ErrorKind::Failed => Vec::new(),
            Err(error) => return Err(error),
        };
        match container {
            _ if !boots.is_empty() => Ok(boots),
            // The kernel knows the current boot.
            None => current_boot().ok_or_else(|| no_journal(None)),
            Some(_) => Err(no_journal(container)),
        }
    }

    /// Checks that a journal has any line: "no line matches" would be wrong about one that does not exist.
    async fn require_lines(&self, container: Option<&ContainerRef>) -> Result<(), BackendError> {
        let any = LogSearch {
            container: container.cloned(),
            most: 1,
            query: LogQuery::default(),
        };
        let (lines, _) = self.lines(&any, QUESTION_TIME).await?;
        if lines.is_empty() {
            return Err(no_journal(container));
        }
        Ok(())
    }

    /// Returns matching lines in order of arrival, up to the maximum and the timeout, and whether
    /// there are more.
    async fn lines(
        &self,
        search: &LogSearch,
        time: Duration,
    ) -> Result<(Vec<LogLine>, bool), BackendError> {
        let (operation, asked) = self.operation(search)?;
        let found = self.read(operation, search, time).await;
        restore_name(search.container.as_ref(), asked.as_ref(), found)
    }

    async fn read(
        &self,
        operation: Operation,
        search: &LogSearch,
        time: Duration,
    ) -> Result<(Vec<LogLine>, bool), BackendError> {
        let limits = OperationLimits {
            timeout_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
            output_bytes: OUTPUT_BYTES,
            processes: 64,
        };
        let most = printed_at_most(&operation);
        let running = self.helper.start(operation, limits, &self.reference);
        let mut reader = OutputLineReader::of(running.await?);
        let (mut lines, mut bytes) = (Vec::new(), 0);
        let machine = search.container.is_none().then(machine_id);
        loop {
            let Some(json) = reader.next().await? else {
                let follows = search.query.order == LogOrder::Follow;
                if reader.truncated() && lines.is_empty() && !follows {
                    return Err(too_long());
                }
                // Lines that are not shown count for journalctl; older ones may remain.
                let is_cut = most.is_some_and(|most| reader.printed_lines() >= most as usize);
                return Ok((lines, reader.truncated() || is_cut));
            };
            let fields: Map<String, Value> = serde_json::from_slice(&json).unwrap_or_default();
            let Some(line) = LogLine::of(&fields) else {
                continue;
            };
            if !self.shows(&fields, machine.as_deref()) {
                continue;
            }
            // With a cursor, journalctl accepts no start time.
            let too_old = search.query.since_ms.is_some_and(|since| line.ms < since);
            if too_old && search.query.order == LogOrder::Older {
                return Ok((lines, false));
            }
            if lines.len() >= search.most || bytes > PAGE_BYTES {
                return Ok((lines, true));
            }
            if !too_old {
                bytes += line.page_bytes();
                lines.push(line);
            }
            if search.query.order == LogOrder::Follow && !lines.is_empty() {
                return Ok((lines, false));
            }
        }
    }

    /// Returns the operation, and the name under which the container is queried.
    fn operation(
        &self,
        search: &LogSearch,
    ) -> Result<(Operation, Option<ContainerRef>), BackendError> {
        let mut query = search.query.clone();
        // One more line than is shown tells whether there are more. journalctl would print on until it is killed.
        query.most = u32::try_from(search.most)
            .ok()
            .map(|most| most.saturating_add(1));
        let Some(name) = &search.container else {
            self.access.host()?;
            let shown = |unit: UnitName| {
                if self.access.shows_unit(unit.as_str()) {
                    unit
                } else {
                    unit.of_none()
                }
            };
            query.unit = query.unit.map(shown);
            // Some lines are left out.
            query.most = query.most.filter(|_| self.access.everything().is_ok());
            return Ok((Operation::HostLog { query }, None));
        };
        let container = self.access.name(name);
        let operation = Operation::ContainerLog {
            container: container.clone(),
            query,
        };
        Ok((operation, Some(container)))
    }

    /// Whether a caller may see a line. Without access to everything, a caller sees in the host's
    /// journal neither gatewren's own units, which mention all agents, nor inaccessible containers.
    /// A container's own journal is not filtered.
    fn shows(&self, line: &Map<String, Value>, machine: Option<&str>) -> bool {
        let Some(machine) = machine.filter(|_| self.access.everything().is_err()) else {
            return true;
        };
        let ours = ["_SYSTEMD_UNIT", "UNIT", "SYSLOG_IDENTIFIER", "_COMM"];
        let begins = |field: &&str| line.get(*field).is_some_and(names_gatewren);
        !ours.iter().any(begins) && self.access.shows_line(line, machine)
    }
}

/// Whether a field names one of gatewren's units or programs. A field that is not text might.
fn names_gatewren(field: &Value) -> bool {
    field
        .as_str()
        .is_none_or(|text| text.starts_with("gatewren"))
}

/// Returns the answer, with the container's requested name restored in errors.
fn restore_name<T>(
    name: Option<&ContainerRef>,
    asked: Option<&ContainerRef>,
    answer: Result<T, BackendError>,
) -> Result<T, BackendError> {
    match (name, asked) {
        (Some(name), Some(asked)) => unmask_error(name, asked, answer),
        _ => answer,
    }
}

/// Returns this host's id; a host without one has no journal either.
fn machine_id() -> String {
    let id = std::fs::read_to_string(MACHINE_ID).unwrap_or_default();
    id.trim().to_owned()
}

/// The error about a machine whose journal has no line.
fn no_journal(container: Option<&ContainerRef>) -> BackendError {
    let (whose, hint) = match container {
        Some(name) => (
            format!("container '{name}'"),
            "container_logs has its console's output and LXC's log of its start",
        ),
        None => (
            "the host".to_owned(),
            "journald is not running, or keeps nothing here; file_read reads files below /var/log if the owner allows it",
        ),
    };
    BackendError {
        hint: Some(hint.to_owned()),
        ..BackendError::new(
            ErrorKind::Failed,
            format!("there is no journal of {whose}: nothing was searched"),
        )
    }
}

fn too_long() -> BackendError {
    BackendError {
        hint: Some("narrow it with unit, since, until, boot or priority".to_owned()),
        ..BackendError::new(
            ErrorKind::Failed,
            "the search of the journal timed out before it found anything",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::config::Space;

    #[test]
    fn who_does_not_reach_everything_hears_nothing_of_what_is_elsewhere() {
        let journal = Journal::new(HelperClient::connect_to("/nonexistent".into()));
        let space = Space {
            containers: vec!["web".parse().unwrap()],
            host: true,
        };
        let view = journal.view_for(&Reach::of(&space), "r");
        let everything = journal.view_for(&Reach::everything(), "r");
        for (unit, message, is_shown) in [
            ("ssh.service", "a login", true),
            ("lxc@web.service", "started", true),
            ("lxc@vault.service", "started", false),
            ("gatewren.service", "GATEWREN_AGENT=somebody", false),
            ("init.scope", "the door of the vault: up", true),
            ("init.scope", "apparmor lxc-vault_</var/lib/lxc>", false),
            ("init.scope", "apparmor lxc-web_</var/lib/lxc>", true),
        ] {
            let line = serde_json::json!({ "_SYSTEMD_UNIT": unit, "MESSAGE": message });
            let line = line.as_object().unwrap();
            assert_eq!(view.shows(line, Some("0d47")), is_shown, "{unit} {message}");
            assert!(view.shows(line, None) && everything.shows(line, Some("0d47")));
        }
    }
}
