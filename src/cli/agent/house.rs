//! What every subcommand stands on.

use crate::config::Spaces;
use crate::vault::{OfferedTool, Vault};

/// Where the agents are, and what their policies can speak of.
pub struct House {
    /// Their vault.
    pub vault: Vault,
    /// The spaces of the settings.
    pub spaces: Spaces,
    /// The tools that the server offered when it was last started; none where that is not known.
    pub tools: Vec<OfferedTool>,
    /// Whether JSON is asked for.
    pub json: bool,
}
