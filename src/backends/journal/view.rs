//! The journals within somebody's reach, through the helper.

use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::config::Reach;
use crate::helper_client::{
    ContainerName, Helper, Limits, LogCursor, LogOrder, LogQuery, Operation, UnitName,
};

use super::super::ask::ask;
use super::super::error::{BackendError, ErrorKind};
use super::super::threshold::{Threshold, told};
use super::boots::{Boot, boots};
use super::line::LogLine;
use super::reader::{End, Reader};

/// How long a journal may be searched; what was found until then is told.
const SEARCH_TIME: Duration = Duration::from_secs(40);

/// How long a short question may take.
const QUESTION_TIME: Duration = Duration::from_secs(20);

/// The most that is read for one answer, in bytes; what was found until then is told.
const OUTPUT_BYTES: u64 = 64 << 20;

/// The most text that one page has, in bytes; further lines are on the next.
const PAGE_BYTES: usize = 24 * 1024;

/// Where this machine's id is (machine-id(5)).
const MACHINE_ID: &str = "/etc/machine-id";

/// The journals; what can be asked is asked by a view of them.
#[derive(Debug, Clone)]
pub struct Journal {
    helper: Helper,
}

/// The journals within somebody's reach.
#[derive(Debug, Clone)]
pub struct JournalView {
    helper: Helper,
    threshold: Threshold,
    reference: String,
}

/// What is looked for, and how many lines of it.
#[derive(Debug, Clone)]
pub struct LogSearch {
    /// The container whose own journal it is; the host when absent.
    pub container: Option<ContainerName>,
    /// Which lines.
    pub query: LogQuery,
    /// The most of them.
    pub most: usize,
}

/// Some lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LogPage {
    /// The oldest first.
    pub lines: Vec<LogLine>,
    /// Whether there are more in the direction that was asked for.
    pub truncated: bool,
    /// The place of the first line: older ones are before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_cursor: Option<LogCursor>,
    /// The place of the last line: newer ones are behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_cursor: Option<LogCursor>,
}

impl Journal {
    /// Over this helper.
    pub fn new(helper: Helper) -> Self {
        Self { helper }
    }

    /// Whether this box has what reads a journal.
    pub fn is_here() -> bool {
        Path::new("/usr/bin/journalctl").exists()
    }

    /// The journals within reach; `reference` names our calls in the helper's log.
    pub fn seen_by(&self, reach: &Reach, reference: &str) -> JournalView {
        JournalView {
            helper: self.helper.clone(),
            threshold: Threshold::of(reach),
            reference: reference.to_owned(),
        }
    }
}

impl JournalView {
    /// Lines that fit.
    ///
    /// # Errors
    /// When the host or the container is not within reach, the container does not run, or has no journal, and what
    /// journalctl says, such as of a pattern that is none.
    pub async fn search(&self, search: &LogSearch) -> Result<LogPage, BackendError> {
        let found = self.lines(search, SEARCH_TIME).await?;
        let (mut lines, truncated) = found;
        if search.query.order == LogOrder::Older {
            lines.reverse();
        }
        let cursor = |line: Option<&LogLine>| line.map(|line| line.cursor.clone());
        Ok(LogPage {
            start_cursor: cursor(lines.first()),
            end_cursor: cursor(lines.last()),
            truncated,
            lines,
        })
    }

    /// The next line that fits; nothing if none is written in time.
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

    /// The boots that a journal knows, the newest first.
    ///
    /// # Errors
    /// As for a search.
    pub async fn boots(
        &self,
        container: Option<&ContainerName>,
    ) -> Result<Vec<Boot>, BackendError> {
        let (operation, asked) = match container {
            None => {
                self.threshold.host()?;
                (Operation::HostBoots {}, None)
            }
            Some(name) => {
                let container = self.threshold.name(name);
                let operation = Operation::ContainerBoots {
                    container: container.clone(),
                };
                (operation, Some(container))
            }
        };
        let answer = ask(&self.helper, operation, QUESTION_TIME, &self.reference).await;
        let text = said_of(container, asked.as_ref(), answer)?;
        Ok(boots(&text))
    }

    /// Lines as they come, at most so many and so long; whether there are more.
    async fn lines(
        &self,
        search: &LogSearch,
        time: Duration,
    ) -> Result<(Vec<LogLine>, bool), BackendError> {
        let (operation, asked) = self.operation(search)?;
        let found = self.read(operation, search, time).await;
        said_of(search.container.as_ref(), asked.as_ref(), found)
    }

    async fn read(
        &self,
        operation: Operation,
        search: &LogSearch,
        time: Duration,
    ) -> Result<(Vec<LogLine>, bool), BackendError> {
        let limits = Limits {
            timeout_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
            output_bytes: OUTPUT_BYTES,
            processes: 64,
        };
        let running = self.helper.start(operation, limits, &self.reference);
        let mut reader = Reader::of(running.await?);
        let (mut lines, mut bytes) = (Vec::new(), 0);
        let machine = search.container.is_none().then(machine_id);
        loop {
            let json = match reader.next().await? {
                Ok(json) => json,
                Err(End::Done) => return Ok((lines, false)),
                Err(End::Cut) if lines.is_empty() && search.query.order != LogOrder::Follow => {
                    return Err(too_long());
                }
                Err(End::Cut) => return Ok((lines, true)),
            };
            let fields: Map<String, Value> = serde_json::from_slice(&json).unwrap_or_default();
            let Some(line) = LogLine::of(&fields) else {
                continue;
            };
            if !self.shows(&fields, machine.as_deref()) {
                continue;
            }
            // Beside a cursor journalctl does not take the moment to begin at.
            let too_old = search.query.since_ms.is_some_and(|since| line.ms < since);
            if too_old && search.query.order == LogOrder::Older {
                return Ok((lines, false));
            }
            if lines.len() >= search.most || bytes > PAGE_BYTES {
                return Ok((lines, true));
            }
            if !too_old {
                bytes += line.message.len() + 128;
                lines.push(line);
            }
            if search.query.order == LogOrder::Follow && !lines.is_empty() {
                return Ok((lines, false));
            }
        }
    }

    /// The operation, and under which name the container is asked about.
    fn operation(
        &self,
        search: &LogSearch,
    ) -> Result<(Operation, Option<ContainerName>), BackendError> {
        let mut query = search.query.clone();
        let Some(name) = &search.container else {
            self.threshold.host()?;
            let shown = |unit: UnitName| {
                if self.threshold.shows_unit(unit.as_str()) {
                    unit
                } else {
                    unit.of_none()
                }
            };
            query.unit = query.unit.map(shown);
            return Ok((Operation::HostLog { query }, None));
        };
        let container = self.threshold.name(name);
        let operation = Operation::ContainerLog {
            container: container.clone(),
            query,
        };
        Ok((operation, Some(container)))
    }

    /// To who does not reach the whole box the host's journal shows nothing of gatewren's own units, which tell of all
    /// agents, and nothing of containers beyond reach. In a container's own stands what the container knows.
    fn shows(&self, line: &Map<String, Value>, machine: Option<&str>) -> bool {
        let Some(machine) = machine.filter(|_| self.threshold.everything().is_err()) else {
            return true;
        };
        let ours = ["_SYSTEMD_UNIT", "UNIT", "SYSLOG_IDENTIFIER", "_COMM"];
        let begins = |field: &&str| line.get(*field).is_some_and(is_of_ours);
        !ours.iter().any(begins) && self.threshold.shows_line(line, machine)
    }
}

/// Whether a field names one of gatewren's units or programs; what is no text may.
fn is_of_ours(field: &Value) -> bool {
    field
        .as_str()
        .is_none_or(|text| text.starts_with("gatewren"))
}

/// The answer, with the container under the name that it was asked about.
fn said_of<T>(
    name: Option<&ContainerName>,
    asked: Option<&ContainerName>,
    answer: Result<T, BackendError>,
) -> Result<T, BackendError> {
    match (name, asked) {
        (Some(name), Some(asked)) => told(name, asked, answer),
        _ => answer,
    }
}

/// This machine's id; without one it has no journal either.
fn machine_id() -> String {
    let id = std::fs::read_to_string(MACHINE_ID).unwrap_or_default();
    id.trim().to_owned()
}

fn too_long() -> BackendError {
    BackendError {
        hint: Some("narrow it with unit, since, until, boot or priority".to_owned()),
        ..BackendError::new(
            ErrorKind::Failed,
            "the journal is too long to be searched in time, and nothing was found until then",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Space;

    #[test]
    fn who_does_not_reach_everything_hears_nothing_of_what_is_elsewhere() {
        let journal = Journal::new(Helper::connect_to("/nonexistent".into()));
        let space = Space {
            containers: vec!["web".parse().unwrap()],
            host: true,
        };
        let view = journal.seen_by(&Reach::of(&space), "r");
        let everything = journal.seen_by(&Reach::everything(), "r");
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
