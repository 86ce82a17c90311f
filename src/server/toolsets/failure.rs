//! Converts a backend's error to an error for the model.

use gatewren_host::backends::{BackendError, ErrorKind};
use gatewren_wire::registry::{Interruption, ToolError};

/// Converts the message, and adds a hint to a neighbouring tool where one helps.
pub fn failed(error: BackendError) -> Interruption {
    let hint = error.hint.or_else(|| match error.kind {
        ErrorKind::NotFound => Some("container_list lists the containers.".to_owned()),
        ErrorKind::NotRunning => Some("container_start starts it.".to_owned()),
        _ => None,
    });
    ToolError {
        message: error.message,
        hint,
        retry: error.retry,
        absent: error.kind == ErrorKind::NotFound,
    }
    .into()
}
