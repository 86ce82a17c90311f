//! The container runtimes of the host, as the helper reports them.

use std::time::Duration;

use crate::helper_client::{Operation, RuntimeReport};

use super::super::error::{BackendError, ErrorKind};
use super::containers::LxcView;

/// The timeout of the query: each engine has 12 s to connect and answer, twice.
const REPORT_TIME: Duration = Duration::from_mins(1);

impl LxcView {
    /// Returns a report of each runtime that gatewren knows, here or not, served or not.
    ///
    /// # Errors
    /// Fails if the caller may not see all containers, or if the helper does not answer.
    pub async fn runtimes(&self) -> Result<Vec<RuntimeReport>, BackendError> {
        self.check_sees_all()?;
        let text = self.ask(Operation::RuntimeReport {}, REPORT_TIME).await?;
        let reports = text.lines().map(serde_json::from_str);
        reports.collect::<Result<_, _>>().map_err(|cause| {
            let words = format!("the helper's answer about container runtimes is invalid: {cause}");
            BackendError::new(ErrorKind::Failed, words)
        })
    }
}
