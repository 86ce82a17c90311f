//! The fields that every result of the stateless shape has.

use serde_json::{Value, json};

use gatewren_wire::protocol::Implementation;

/// How long a client may cache a result. Lists depend on the agent's policy, so no result may be cached for other
/// agents (2026-07-28, caching).
#[derive(Debug, Clone, Copy)]
pub enum CachePolicy {
    /// The method has no caching hints.
    None,
    /// For this many milliseconds, and only for this credential.
    Private(u64),
}

/// Completes a result: its type, its caching hints and the server's identity.
pub fn complete(mut result: Value, caching: CachePolicy, server: &Implementation) -> Value {
    if let Some(object) = result.as_object_mut() {
        object.insert("resultType".into(), json!("complete"));
        if let CachePolicy::Private(ttl_ms) = caching {
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
            profile: None,
        };
        for ttl_ms in [0, 5, 3_600_000] {
            let result = complete(
                json!({ "tools": [] }),
                CachePolicy::Private(ttl_ms),
                &server,
            );
            assert_eq!(result["ttlMs"], ttl_ms);
            assert_eq!(result["cacheScope"], "private");
        }
    }
}
