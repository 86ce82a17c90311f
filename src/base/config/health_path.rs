//! `access.health_path`: the path that tells a monitor or a proxy that the server runs.

use toml::de::DeValue;

use super::shape::Shape;

/// The maximum length of the path.
const MAX_BYTES: usize = 64;

/// The first parts of the server's own paths. The test of the server's paths keeps this list complete.
const OWN: [&str; 10] = [
    "mcp",
    "sse",
    "message",
    "metrics",
    "login",
    "logout",
    "pair",
    "connect",
    "owner",
    ".well-known",
];

/// The path of the health check.
pub(super) struct HealthPath;

impl Shape<String> for HealthPath {
    fn read(&self, value: &DeValue<'_>) -> Result<String, String> {
        let path = value.as_str().filter(|path| may_be_health_path(path));
        path.map(str::to_owned).ok_or_else(|| {
            format!(
                "a path in quotes, such as \"/healthz\", of at most {MAX_BYTES} of A-Z, a-z, 0-9, ., _, ~, - and /, \
                 and not below a path of the server: /{}",
                OWN.join(", /")
            )
        })
    }

    fn write(&self, value: &String) -> String {
        format!("\"{value}\"")
    }
}

/// Whether the server has no path of its own there, and no client or proxy would send another path instead.
pub fn may_be_health_path(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
    // Clients and proxies remove `.` and `..`.
    let fits = |part: &str| !["", ".", ".."].contains(&part) && part.bytes().all(is_plain);
    let Some(rest) = path.strip_prefix('/') else {
        return false;
    };
    let first = rest.split('/').next().unwrap_or_default();
    // A path that differs in the letter case only would be taken for the other one.
    let is_own = OWN.iter().any(|own| own.eq_ignore_ascii_case(first));
    path.len() <= MAX_BYTES && rest.split('/').all(fits) && !is_own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_plain_and_none_of_the_servers_own() {
        for path in [
            "/health",
            "/healthz",
            "/-/ready",
            "/status/gate_1.0~a",
            "/mcp2",
        ] {
            assert!(may_be_health_path(path), "{path}");
        }
        let long = format!("/{}", "a".repeat(MAX_BYTES));
        let bad = [
            "",
            "/",
            "health",
            "/a//b",
            "/a/",
            "/a?b",
            "/a b",
            "/%61",
            "/a/../mcp",
            "/mcp",
            "/MCP",
            "/owner/x",
            "/login",
            "/.well-known/x",
            "/connect/x",
            &long,
        ];
        for path in bad {
            assert!(!may_be_health_path(path), "{path}");
        }
    }
}
