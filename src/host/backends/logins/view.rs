//! The logins that a caller may see, collected from the host and its containers.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use crate::helper_client::{ContainerRef, HelperClient, LogPattern, LogQuery, SystemRecord};
use gatewren_base::config::Reach;
use gatewren_base::sys::now_ms;

use super::super::access_filter::AccessFilter;
use super::super::error::BackendError;
use super::super::journal::{Journal, JournalView, LogSearch};
use super::super::lxc::{Lxc, LxcView};
use super::super::records::{MachineRecordReader, RecordOwner, RecordReader};
use super::super::side_by_side::side_by_side;
use super::super::unread::UnreadSource;
use super::combine::MachineRecords;
use super::event::LoginEvent;
use super::messages::{LogMessage, MESSAGES, login_of};
use super::syslog::{SyslogFacts, syslog_events};
use super::utmp::utmp_events;

/// The most containers that are read; the rest are named as unread.
const MAX_CONTAINERS: usize = 50;

/// The time for all machines together, and for one of them. Machines that are not read in time are named as unread.
const TIME: Duration = Duration::from_secs(25);
const MACHINE_TIME: Duration = Duration::from_secs(8);

/// The most pages of a journal that are read, the newest first; a page has about 200 lines.
const MAX_PAGES: usize = 10;

/// The number of lines in a page.
const PAGE_LINES: usize = 200;

/// Reads logins.
#[derive(Debug, Clone)]
pub struct MachineLogins {
    helper: HelperClient,
    lxc: Lxc,
    journal: Journal,
}

/// The period that is asked for, in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub struct LoginPeriod {
    /// Its beginning.
    pub since_ms: u64,
    /// Its end; absent for now.
    pub until_ms: Option<u64>,
}

/// The logins, and what could not be read.
#[derive(Debug, Default)]
pub struct LoginsFound {
    /// The logins with the container that each was in; absent for the host. In no order.
    pub events: Vec<PlacedLogin>,
    /// The sources that were read.
    pub read: Vec<String>,
    /// Those that were not.
    pub unread: Vec<UnreadSource>,
}

/// A login with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedLogin {
    /// The container; absent for the host.
    pub container: Option<ContainerRef>,
    /// The login.
    pub event: LoginEvent,
}

/// Access for one caller.
struct LoginReader<'l> {
    records: RecordReader<'l>,
    journal: JournalView,
    period: LoginPeriod,
}

/// The machine that is read.
#[derive(Clone, Copy)]
struct Machine<'c> {
    container: Option<&'c ContainerRef>,
}

/// Its files.
struct MachineFiles<'c> {
    machine: Machine<'c>,
    reader: MachineRecordReader<'c>,
}

impl MachineLogins {
    /// Returns access through this helper.
    pub fn new(helper: HelperClient) -> Self {
        Self {
            lxc: Lxc::new(helper.clone()),
            journal: Journal::new(helper.clone()),
            helper,
        }
    }

    /// Returns the logins that a caller with this reach may see: those of the host if it reaches the host, and those of
    /// its containers, or of one of them.
    ///
    /// # Errors
    /// When the named container does not exist, or is not within the caller's reach.
    pub async fn find(
        &self,
        reach: &Reach,
        only: Option<&ContainerRef>,
        period: LoginPeriod,
        reference: &str,
    ) -> Result<LoginsFound, BackendError> {
        let lxc = self.lxc.view_for(reach, reference);
        let mut found = LoginsFound::default();
        let containers = match only {
            // An inaccessible one fails as a missing one does.
            Some(name) => lxc.status(name).await.map(|_| vec![name.clone()])?,
            None => all_containers(&lxc, &mut found).await,
        };
        let reader = LoginReader {
            records: RecordReader {
                helper: &self.helper,
                reference,
            },
            journal: self.journal.view_for(reach, reference),
            period,
        };
        let reads_host = only.is_none() && AccessFilter::of(reach).host().is_ok();
        let mut machines = Vec::new();
        machines.extend(reads_host.then_some(None));
        machines.extend(containers.iter().take(MAX_CONTAINERS).cloned().map(Some));
        let begun = Instant::now();
        let (reader, begun) = (&reader, &begun);
        let all = side_by_side(machines, |container| async move {
            if container.is_some() && begun.elapsed() > TIME {
                return None;
            }
            let container = container.as_ref();
            Some(reader.logins(Machine { container }).await)
        });
        let mut left = containers.len().saturating_sub(MAX_CONTAINERS);
        for of_machine in all.await {
            match of_machine {
                Some(mut of_machine) => found.append(&mut of_machine),
                None => left += 1,
            }
        }
        if left > 0 {
            found.leave_out(
                "containers",
                format!("{left} more were not read: name one with `container`"),
            );
        }
        found.events.retain(|one| period.contains(one.event.at_ms));
        Ok(found)
    }
}

async fn all_containers(lxc: &LxcView, found: &mut LoginsFound) -> Vec<ContainerRef> {
    match lxc.list().await {
        Ok(containers) => containers,
        Err(error) => {
            found.leave_out("containers", error.message);
            Vec::new()
        }
    }
}

impl LoginPeriod {
    fn contains(self, at_ms: u64) -> bool {
        at_ms >= self.since_ms && self.until_ms.is_none_or(|until| at_ms <= until)
    }
}

impl LoginsFound {
    fn append(&mut self, of_machine: &mut Self) {
        self.events.append(&mut of_machine.events);
        self.read.append(&mut of_machine.read);
        self.unread.append(&mut of_machine.unread);
    }

    fn leave_out(&mut self, source: impl Into<String>, why: impl Into<String>) {
        let why: String = why.into();
        self.unread.push(UnreadSource::new(source, &why));
    }
}

impl<'c> Machine<'c> {
    /// The name of one of its records in an answer.
    fn source(self, record: &str) -> String {
        match self.container {
            Some(container) => format!("{container} {record}"),
            None => format!("host {record}"),
        }
    }

    fn owner(self) -> RecordOwner<'c> {
        self.container
            .map_or(RecordOwner::Host, RecordOwner::Container)
    }
}

impl LoginReader<'_> {
    /// Returns the logins of a machine.
    async fn logins(&self, machine: Machine<'_>) -> LoginsFound {
        let (mut found, mut of_machine) = (LoginsFound::default(), LoginsFound::default());
        let read = timeout(MACHINE_TIME, self.read(machine, &mut of_machine)).await;
        let Ok(records) = read else {
            let why = format!("it did not answer within {} s", MACHINE_TIME.as_secs());
            found.leave_out(machine.source("records"), why);
            return found;
        };
        let events = records.combined().into_iter();
        found.events.extend(events.map(|event| PlacedLogin {
            container: machine.container.cloned(),
            event,
        }));
        // Without any source there is no news, which must not look like good news.
        if of_machine.read.is_empty() {
            let why = "it has no journal and no record of logins that can be read";
            found.leave_out(machine.source("logins"), why);
        }
        // Most containers have no journal; its other records are enough.
        if machine.container.is_some() && !of_machine.read.is_empty() {
            of_machine
                .unread
                .retain(|one| !one.source.ends_with(" journal"));
        }
        found.append(&mut of_machine);
        found
    }

    /// Reads the files and the journal at the same time: `journalctl` takes longest.
    async fn read(&self, machine: Machine<'_>, found: &mut LoginsFound) -> MachineRecords {
        let mut of_journal = LoginsFound::default();
        let (files, journal) = tokio::join!(
            self.read_files(machine, found),
            self.messages(machine, &mut of_journal),
        );
        found.append(&mut of_journal);
        MachineRecords { journal, ..files }
    }

    async fn read_files(&self, machine: Machine<'_>, found: &mut LoginsFound) -> MachineRecords {
        let reader = self.records.of_machine(machine.owner()).await;
        let zone = reader.zone().await;
        let facts = SyslogFacts {
            zone: &zone,
            now_ms: now_ms(),
        };
        let success = |bytes: &[u8], offset: u64| utmp_events(bytes, offset, true);
        let failure = |bytes: &[u8], offset: u64| utmp_events(bytes, offset, false);
        let syslog = |bytes: &[u8], _: u64| syslog_events(bytes, facts);
        let files = MachineFiles { machine, reader };
        let logins = [SystemRecord::Logins, SystemRecord::OlderLogins];
        let failed = [SystemRecord::FailedLogins, SystemRecord::OlderFailedLogins];
        let messages = [SystemRecord::AuthMessages, SystemRecord::OlderAuthMessages];
        MachineRecords {
            wtmp: self.record(&files, logins, success, found).await,
            btmp: self.record(&files, failed, failure, found).await,
            syslog: self.record(&files, messages, syslog, found).await,
            journal: Vec::new(),
        }
    }

    /// Returns the logins of a record, and of the one before the last rotation if the first begins later than the
    /// period.
    async fn record(
        &self,
        files: &MachineFiles<'_>,
        records: [SystemRecord; 2],
        parse: impl Fn(&[u8], u64) -> Vec<LoginEvent>,
        found: &mut LoginsFound,
    ) -> Vec<LoginEvent> {
        let mut events = Vec::new();
        for record in records {
            let name = record.path().rsplit('/').next().unwrap_or_default();
            let source = files.machine.source(name);
            match files.reader.read(record).await {
                Ok(Some(end)) => {
                    let newer = parse(&end.bytes, end.offset);
                    let oldest = newer.iter().map(|event| event.at_ms).min();
                    events.extend(newer);
                    found.read.push(source.clone());
                    let reaches_back = oldest.is_some_and(|oldest| oldest < self.period.since_ms);
                    if !reaches_back && end.offset > 0 {
                        let why = format!("only its newest {} bytes were read", end.bytes.len());
                        found.leave_out(source, why);
                    }
                    if reaches_back || end.offset > 0 {
                        break;
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    found.leave_out(source, error.message);
                    break;
                }
            }
        }
        events
    }

    /// Returns the logins in the journal. Most containers have none: only that of the host is missed.
    async fn messages(&self, machine: Machine<'_>, found: &mut LoginsFound) -> Vec<LoginEvent> {
        let source = machine.source("journal");
        let Ok(pattern) = LogPattern::try_from(MESSAGES.to_owned()) else {
            return Vec::new();
        };
        let mut search = LogSearch {
            container: machine.container.cloned(),
            most: PAGE_LINES,
            query: LogQuery {
                since_ms: Some(self.period.since_ms),
                until_ms: self.period.until_ms,
                grep: Some(pattern),
                ..LogQuery::default()
            },
        };
        let mut events = Vec::new();
        for page in 0.. {
            let lines = match self.journal.search(&search).await {
                Ok(lines) => lines,
                Err(error) => {
                    found.leave_out(source, error.message);
                    break;
                }
            };
            if page == 0 {
                found.read.push(source.clone());
            }
            events.extend(lines.lines.iter().filter_map(|line| {
                login_of(LogMessage {
                    at_ms: line.ms,
                    program: line.identifier.as_deref()?,
                    pid: line.pid,
                    text: &line.message,
                })
            }));
            let older = lines.start_cursor.filter(|_| lines.truncated);
            let Some(cursor) = older else { break };
            if page + 1 >= MAX_PAGES {
                let why = format!("only its newest {} messages were read", events.len());
                found.leave_out(source, why);
                break;
            }
            search.query.cursor = Some(cursor);
            // journalctl takes no times with a cursor; the view stops at older lines.
            search.query.until_ms = None;
        }
        events
    }
}
