//! The URLs of this server in OAuth: issuer, resource and endpoints, under the origin of the request.

use hyper::Uri;

/// The path of the protected resource.
const RESOURCE: &str = "/connect/mcp";

/// The path of the issuer. It is not empty, so that nothing of OAuth is at the root, where clients with a token
/// look for it.
const ISSUER: &str = "/connect";

/// The only scope: an agent's permissions are its policy, which the owner chooses and no program requests.
pub const SCOPE: &str = "mcp";

/// The server under one of its names; a host has several. A token that was issued under one name is valid only
/// there.
#[derive(Debug, Clone)]
pub struct IssuerOrigin(String);

impl IssuerOrigin {
    /// Creates it from an origin, such as `https://box.lan:8443`.
    pub fn new(origin: String) -> Self {
        Self(origin)
    }

    /// The issuer of tokens.
    pub fn issuer(&self) -> String {
        self.at(ISSUER)
    }

    /// The resource that tokens are valid for.
    pub fn resource(&self) -> String {
        self.at(RESOURCE)
    }

    /// A URL below the issuer.
    pub fn below(&self, name: &str) -> String {
        self.at(&format!("{ISSUER}/{name}"))
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    /// Whether a URL is the resource. Scheme and host may be in upper case, and the default port of https may be
    /// included.
    pub fn is_resource(&self, asked: &str) -> bool {
        let Ok(uri) = asked.parse::<Uri>() else {
            return false;
        };
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return false;
        };
        let authority = authority.as_str().to_ascii_lowercase();
        let authority = authority.strip_suffix(":443").unwrap_or(&authority);
        !asked.contains('#')
            && format!("{scheme}://{authority}") == self.0
            && uri
                .path_and_query()
                .is_some_and(|path| path.as_str() == RESOURCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resource_is_known_however_its_host_is_written() {
        let site = IssuerOrigin::new("https://box.lan".to_owned());
        for good in [
            "https://box.lan/connect/mcp",
            "HTTPS://Box.LAN/connect/mcp",
            "https://box.lan:443/connect/mcp",
        ] {
            assert!(site.is_resource(good), "{good}");
        }
        for bad in [
            "",
            "https://box.lan",
            "https://box.lan/mcp",
            "https://box.lan/connect/mcp/",
            "https://box.lan/connect/mcp?a",
            "https://box.lan/connect/mcp#a",
            "https://box.lan:8443/connect/mcp",
            "https://me@box.lan/connect/mcp",
            "http://box.lan/connect/mcp",
            "/connect/mcp",
        ] {
            assert!(!site.is_resource(bad), "{bad}");
        }
    }
}
