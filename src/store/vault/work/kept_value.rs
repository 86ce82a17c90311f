//! Values that are kept as JSON under a key of the table `meta`.

use rusqlite::{Connection, OptionalExtension as _};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::vault::error::VaultError;
use crate::vault::job::Durability;
use crate::vault::shared::SharedVault;

impl SharedVault {
    /// Stores a value instead of the earlier one. A power cut may undo the write.
    pub(super) async fn keep_value(
        &self,
        doing: &'static str,
        key: &'static str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), VaultError> {
        let text = serde_json::to_string(value).map_err(|cause| VaultError::Refused {
            doing,
            cause: cause.to_string(),
        })?;
        let work = move |connection: &Connection| {
            connection
                .execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", (key, text))
                .map(drop)
        };
        let written = self.writer.write(doing, Durability::Process, work, |()| ());
        written.await
    }

    /// Returns the value. `None` before it was first stored, or if a newer version has written a format that is
    /// unknown here.
    pub(super) fn kept_value<T: DeserializeOwned>(
        &self,
        doing: &'static str,
        key: &'static str,
    ) -> Result<Option<T>, VaultError> {
        let text = self.read(doing, |connection| {
            let mut select = connection.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
            select
                .query_row([key], |row| row.get::<_, String>(0))
                .optional()
        })?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }
}
