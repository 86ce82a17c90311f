//! What this server is called in OAuth: issuer, resource and endpoints, under the origin that a request was sent to.

use hyper::Uri;

/// Where programs come in.
const RESOURCE: &str = "/connect/mcp";

/// Whom they ask. It has a path, so that nothing of OAuth is at the root, where clients with a token look for it.
const ISSUER: &str = "/connect";

/// The one scope: what an agent may do is its policy, which the owner chooses and no program asks for.
pub const SCOPE: &str = "mcp";

/// The server under one of its names, of which a box has several. What is given under one is good there alone.
#[derive(Debug, Clone)]
pub struct Site(String);

impl Site {
    /// The one with this origin, such as `https://box.lan:8443`.
    pub fn new(origin: String) -> Self {
        Self(origin)
    }

    /// Who gives out tokens.
    pub fn issuer(&self) -> String {
        self.at(ISSUER)
    }

    /// What they are good for.
    pub fn resource(&self) -> String {
        self.at(RESOURCE)
    }

    /// Something below the issuer.
    pub fn below(&self, name: &str) -> String {
        self.at(&format!("{ISSUER}/{name}"))
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    /// Whether a URL is the resource. Scheme and host may be in capitals, and the port that https has anyway may be there.
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
        let site = Site::new("https://box.lan".to_owned());
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
