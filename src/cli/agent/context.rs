//! What every subcommand of `gatewren agent` needs.

use gatewren_base::config::Spaces;
use gatewren_store::vault::{OfferedTool, Vault};

/// The agents, and the names that their policies can refer to.
pub struct CliContext {
    /// The vault with the agents.
    pub vault: Vault,
    /// The spaces of the settings.
    pub spaces: Spaces,
    /// The tools that the server offered at its last start; empty if unknown.
    pub tools: Vec<OfferedTool>,
    /// Whether to print JSON.
    pub json: bool,
    /// The options that name this gatewren, for the commands in hints.
    pub options: String,
}
