//! `[access] required_header`: a header that each request of an agent must have, with any value or the owner's.

use hyper::StatusCode;
use hyper::header::HeaderMap;

use super::refusal::Refusal;
use gatewren_base::config::AccessSettings;
use gatewren_base::sys::{FileError, Secret, read_secret};

/// The header that the owner requires.
pub struct RequiredHeader {
    name: String,
    /// The required value; `None` if any will do.
    value: Option<Secret>,
}

impl RequiredHeader {
    /// Returns the header of the settings, and reads its value from the file; `None` if none is required.
    ///
    /// # Errors
    /// If the file cannot be read, or if other users can.
    pub fn of(access: &AccessSettings) -> Result<Option<Self>, FileError> {
        if access.required_header.is_empty() {
            return Ok(None);
        }
        let file = access.required_header_value_file.as_deref();
        Ok(Some(Self {
            name: access.required_header.clone(),
            value: file.map(read_secret).transpose()?,
        }))
    }

    /// Checks the headers of a request.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let name = &self.name;
        let (is_there, with) = match &self.value {
            None => (headers.contains_key(name), ""),
            Some(value) => (self.is_equal(value, headers), ", with the owner's value"),
        };
        if is_there {
            return Ok(());
        }
        let words =
            format!("the owner of this server requires the header {name} in each request{with}");
        let status = StatusCode::FORBIDDEN;
        Err(Refusal::new(status, "header_required", words))
    }

    /// Whether the header is there once and with this value. A second one is ambiguous: a proxy may have added its own
    /// to that of a client. Two secrets are compared in constant time.
    fn is_equal(&self, value: &Secret, headers: &HeaderMap) -> bool {
        let mut sent = headers.get_all(&self.name).iter();
        let first = sent.next().and_then(|sent| sent.to_str().ok());
        first.is_some_and(|sent| Secret::new(sent) == *value) && sent.next().is_none()
    }
}
