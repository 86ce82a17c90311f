//! Converts a backend's error to an error for the model.

use gatewren_host::backends::{BackendError, ErrorKind};
use gatewren_wire::registry::{Interruption, ToolError};

/// What errors about containers have in their message.
const CONTAINER: &str = "container";

/// What the message about a frozen container names.
const UNFREEZE: &str = "container_unfreeze";

/// What the message about a stopped container may name.
const START: &str = "container_start";

/// Converts the message, and adds a hint to a neighbouring tool where one helps.
pub fn failed(error: BackendError) -> Interruption {
    let names = |word: &str| error.message.contains(word);
    let hint = match error.kind {
        ErrorKind::NotFound if names(CONTAINER) && !names("container_list") => {
            Some("container_list lists the containers.".to_owned())
        }
        // A start does not help a frozen container, and the message names the tool that does.
        ErrorKind::NotRunning if names(UNFREEZE) || names(START) => None,
        ErrorKind::NotRunning => Some("container_start starts it.".to_owned()),
        _ => None,
    };
    let hint = error.hint.or(hint);
    ToolError {
        message: error.message,
        hint,
        retry: error.retry,
        absent: error.kind == ErrorKind::NotFound,
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(kind: ErrorKind, message: &str) -> Option<String> {
        match failed(BackendError::new(kind, message)) {
            Interruption::Failed(error) => error.hint,
            _ => None,
        }
    }

    #[test]
    fn a_hint_names_a_tool_only_where_it_helps() {
        let stopped = hint(ErrorKind::NotRunning, "container 'a' is stopped");
        assert_eq!(stopped.as_deref(), Some("container_start starts it."));
        let says_it = "container 'a' is stopped; start it first (container_start)";
        assert_eq!(hint(ErrorKind::NotRunning, says_it), None);
        let frozen = "container 'a' is frozen; let it go on first (container_unfreeze)";
        assert_eq!(hint(ErrorKind::NotRunning, frozen), None);
        let absent = "there is no container 'a'";
        assert!(hint(ErrorKind::NotFound, absent).is_some());
        let named = "there is no container 'a'; container_list shows those that exist";
        assert_eq!(hint(ErrorKind::NotFound, named), None);
        let address = "no address is known for nosuch.invalid";
        assert_eq!(hint(ErrorKind::NotFound, address), None);
    }
}
