//! What every result of the stateless shape carries.

use serde_json::{Value, json};

use crate::protocol::Implementation;

/// How long a client may keep what it was given. Lists depend on the agent's policy, so nothing is
/// for sharing (2026-07-28, caching).
#[derive(Debug, Clone, Copy)]
pub enum Caching {
    /// The method has no hints.
    None,
    /// Until this many milliseconds have passed, for this credential alone.
    Private(u64),
}

/// Finishes a result: its type, its caching hints and who answered.
pub fn complete(mut result: Value, caching: Caching, server: &Implementation) -> Value {
    if let Some(object) = result.as_object_mut() {
        object.insert("resultType".into(), json!("complete"));
        if let Caching::Private(ttl_ms) = caching {
            object.insert("ttlMs".into(), json!(ttl_ms));
            object.insert("cacheScope".into(), json!("private"));
        }
    }
    server.sign(&mut result);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c3_c4_whatever_may_be_kept_is_for_its_credential_alone() {
        let server = Implementation {
            name: "x".into(),
            title: None,
            version: "1".into(),
        };
        for ttl_ms in [0, 5, 3_600_000] {
            let result = complete(json!({ "tools": [] }), Caching::Private(ttl_ms), &server);
            assert_eq!(result["ttlMs"], ttl_ms);
            assert_eq!(result["cacheScope"], "private");
        }
    }
}
