//! The tools that the server offered at its last start: the names that policies can refer to.

use serde::{Deserialize, Serialize};

use crate::vault::error::VaultError;
use crate::vault::shared::SharedVault;
use gatewren_base::config::{HelperClass, Risk};

/// The key in the table `meta`.
const KEY: &str = "offered_tools";

/// The properties of an offered tool that policies depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedTool {
    /// Its name.
    pub name: String,
    /// The toolset that it belongs to.
    pub toolset: String,
    /// Its risk class.
    pub risk: Risk,
    /// Whether only agents with access to the host have it.
    pub needs_host: bool,
    /// Whether only agents with access to the host and all containers have it.
    pub needs_everything: bool,
    /// The key of `helper.toml` that disables the tool for all agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<HelperClass>,
}

/// Access to the list.
pub struct OfferTable<'a>(&'a SharedVault);

impl<'a> OfferTable<'a> {
    pub(in crate::vault) fn new(shared: &'a SharedVault) -> Self {
        Self(shared)
    }

    /// Stores these tools instead of the earlier ones.
    pub async fn keep(&self, tools: &[OfferedTool]) -> Result<(), VaultError> {
        let doing = "store the list of tools";
        self.0.keep_value(doing, KEY, tools).await
    }

    /// Returns the tools. Empty before the first start, or if a newer version has written a format that is unknown
    /// here.
    pub fn tools(&self) -> Result<Vec<OfferedTool>, VaultError> {
        let tools = self.0.kept_value("read the list of tools", KEY)?;
        Ok(tools.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::offered_tools::*;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    #[tokio::test]
    async fn the_last_start_counts() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        assert_eq!(vault.offer().tools().unwrap(), []);
        let tool = |name: &str| OfferedTool {
            name: name.to_owned(),
            toolset: "server".to_owned(),
            risk: Risk::Read,
            needs_host: true,
            needs_everything: false,
            off: None,
        };
        vault.offer().keep(&[tool("a"), tool("b")]).await.unwrap();
        vault.offer().keep(&[tool("c")]).await.unwrap();
        assert_eq!(vault.offer().tools().unwrap(), [tool("c")]);
    }
}
