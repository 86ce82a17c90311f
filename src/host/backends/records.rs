//! Reads the records of logins and packages of the host and of containers through the helper.

use std::time::Duration;

use crate::helper_client::{
    ContainerAction, ContainerRef, HelperClient, Operation, RecordHeader, SystemRecord,
};
use gatewren_base::sys::LocalZone;

use super::error::{BackendError, ErrorKind};
use super::request::{ask_bytes, ask_json};

/// The timeout for one record.
const TIME: Duration = Duration::from_secs(15);

/// Whose record is read. A container is named as the helper knows it; its caller checks access.
#[derive(Debug, Clone, Copy)]
pub enum RecordOwner<'c> {
    /// The host.
    Host,
    /// A container.
    Container(&'c ContainerRef),
}

/// The end of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordEnd {
    /// Its newest bytes.
    pub bytes: Vec<u8>,
    /// Where they begin in the file; above 0 when older ones were left out.
    pub offset: u64,
}

/// Reads records through the helper.
#[derive(Debug, Clone, Copy)]
pub struct RecordReader<'h> {
    /// The helper.
    pub helper: &'h HelperClient,
    /// Identifies the call in the helper's log.
    pub reference: &'h str,
}

/// Reads the records of one machine; those that it lacks are not asked for.
#[derive(Debug)]
pub struct MachineRecordReader<'m> {
    reader: RecordReader<'m>,
    owner: RecordOwner<'m>,
    missing: Vec<SystemRecord>,
}

impl<'m> RecordReader<'m> {
    /// Returns access to the records of one machine, after asking which of them a container lacks: most lack nearly all.
    pub async fn of_machine(self, owner: RecordOwner<'m>) -> MachineRecordReader<'m> {
        let missing = match owner {
            RecordOwner::Host => Vec::new(),
            // If this fails, so does reading each record, with an error about it.
            RecordOwner::Container(container) => self.missing(container).await.unwrap_or_default(),
        };
        MachineRecordReader {
            reader: self,
            owner,
            missing,
        }
    }

    async fn missing(&self, container: &ContainerRef) -> Result<Vec<SystemRecord>, BackendError> {
        let operation = Operation::ContainerAction {
            container: container.clone(),
            action: ContainerAction::MissingRecords {},
        };
        ask_json(self.helper, operation, TIME, self.reference).await
    }

    /// Returns the end of a record; `None` if the file does not exist.
    ///
    /// # Errors
    /// When `helper.toml` does not allow it, when the container is gone, and when reading fails.
    pub async fn read(
        &self,
        owner: RecordOwner<'_>,
        record: SystemRecord,
    ) -> Result<Option<RecordEnd>, BackendError> {
        let operation = match owner {
            RecordOwner::Host => Operation::HostRecord { record },
            RecordOwner::Container(container) => Operation::ContainerAction {
                container: container.clone(),
                action: ContainerAction::Record { record },
            },
        };
        let answer = ask_bytes(self.helper, operation, TIME, self.reference).await?;
        let mut parts = answer.splitn(2, |byte| *byte == b'\n');
        let header: Option<RecordHeader> = parts
            .next()
            .and_then(|line| serde_json::from_slice(line).ok());
        let header = header.ok_or_else(|| {
            BackendError::new(
                ErrorKind::Failed,
                "the helper's answer about a record is invalid",
            )
        })?;
        Ok(header.exists.then(|| RecordEnd {
            bytes: parts.next().unwrap_or_default().to_vec(),
            offset: header.offset,
        }))
    }

    /// Returns the time zone; UTC if there is no file. A damaged or unreadable one of a container counts as UTC too:
    /// most containers have no other.
    pub async fn zone(&self, owner: RecordOwner<'_>) -> LocalZone {
        if matches!(owner, RecordOwner::Host) {
            return LocalZone::of_host();
        }
        let read = self
            .read(owner, SystemRecord::TimeZone)
            .await
            .ok()
            .flatten();
        read.and_then(|zone| LocalZone::parse(&zone.bytes))
            .unwrap_or_else(LocalZone::utc)
    }
}

impl MachineRecordReader<'_> {
    /// Returns the end of a record; see [`RecordReader::read`].
    ///
    /// # Errors
    /// As there.
    pub async fn read(&self, record: SystemRecord) -> Result<Option<RecordEnd>, BackendError> {
        if self.missing.contains(&record) {
            return Ok(None);
        }
        self.reader.read(self.owner, record).await
    }

    /// Returns the time zone; see [`RecordReader::zone`].
    pub async fn zone(&self) -> LocalZone {
        if self.missing.contains(&SystemRecord::TimeZone) {
            return LocalZone::utc();
        }
        self.reader.zone(self.owner).await
    }
}

/// Returns the time zone of the host, or of a container, named as the helper knows it; see [`RecordReader::zone`].
pub async fn zone_of(
    helper: &HelperClient,
    container: Option<&ContainerRef>,
    reference: &str,
) -> LocalZone {
    let owner = container.map_or(RecordOwner::Host, RecordOwner::Container);
    RecordReader { helper, reference }.zone(owner).await
}
