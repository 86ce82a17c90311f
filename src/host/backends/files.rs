//! The host's files below the directories that the owner's file allows.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::helper_client::{
    FileFacts, FileList, FileMatches, FileWritten, HelperClient, HostFileList, HostFileRead,
    HostFileSearch, HostFileWrite, Operation,
};
use gatewren_base::sys::neutralise;

use super::error::{BackendError, ErrorKind};
use super::request::{ask_bytes, ask_json};

/// The timeout for one file or directory.
const PATIENCE: Duration = Duration::from_secs(30);

/// The timeout of a search; the helper ends it earlier itself.
const SEARCH_PATIENCE: Duration = Duration::from_mins(1);

/// Access to the host's files through the helper.
#[derive(Debug, Clone)]
pub struct HostFiles {
    helper: HelperClient,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// Facts about the whole file.
    pub facts: FileFacts,
    /// Its bytes from the requested offset.
    pub bytes: Vec<u8>,
}

impl HostFiles {
    /// Returns access through this helper.
    pub fn new(helper: HelperClient) -> Self {
        Self { helper }
    }

    /// Returns the entries of a directory, or the readable directories if no path is given.
    ///
    /// # Errors
    /// When the owner's file does not allow reading it, and when it is not a directory.
    pub async fn list(
        &self,
        request: HostFileList,
        reference: &str,
    ) -> Result<FileList, BackendError> {
        let operation = Operation::HostFileList(request);
        let mut list: FileList = ask_json(&self.helper, operation, PATIENCE, reference).await?;
        list.path = list.path.as_deref().map(sanitize_line);
        for entry in &mut list.entries {
            entry.name = sanitize_line(&entry.name);
        }
        Ok(list)
    }

    /// Returns matching files and directories below a directory.
    ///
    /// # Errors
    /// As `list`.
    pub async fn search(
        &self,
        request: HostFileSearch,
        reference: &str,
    ) -> Result<FileMatches, BackendError> {
        let operation = Operation::HostFileSearch(request);
        let mut found: FileMatches =
            ask_json(&self.helper, operation, SEARCH_PATIENCE, reference).await?;
        for one in &mut found.matches {
            one.path = sanitize_line(&one.path);
            one.line = one.line.as_deref().map(sanitize_line);
        }
        Ok(found)
    }

    /// Returns a part of a file.
    ///
    /// # Errors
    /// As `list`, and when it is not a regular file.
    pub async fn read(
        &self,
        request: HostFileRead,
        reference: &str,
    ) -> Result<FilePart, BackendError> {
        let operation = Operation::HostFileRead(request);
        let mut bytes = ask_bytes(&self.helper, operation, PATIENCE, reference).await?;
        let line = bytes.iter().position(|byte| *byte == b'\n');
        let facts = line.and_then(|end| {
            let rest = bytes.split_off(end + 1);
            let facts: FileFacts = serde_json::from_slice(&bytes).ok()?;
            Some((facts, rest))
        });
        let (mut facts, bytes) = facts.ok_or_else(|| {
            BackendError::new(ErrorKind::Failed, "the helper's answer is invalid")
        })?;
        facts.path = sanitize_line(&facts.path);
        Ok(FilePart { facts, bytes })
    }

    /// Creates a file, or replaces one and keeps the old version next to it. With `new`, an
    /// existing file is not replaced.
    ///
    /// # Errors
    /// As `list`, when the directory does not exist, and when the path is not a regular file.
    pub async fn write(
        &self,
        path: String,
        bytes: &[u8],
        new: bool,
        reference: &str,
    ) -> Result<FileWritten, BackendError> {
        let operation = Operation::HostFileWrite(HostFileWrite {
            path,
            base64: STANDARD.encode(bytes),
            new,
        });
        ask_json(&self.helper, operation, PATIENCE, reference).await
    }
}

fn sanitize_line(text: &str) -> String {
    neutralise(text).into_owned()
}
