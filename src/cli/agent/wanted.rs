//! The options for a new agent: its name, its policy, and when its token expires.

use super::limits::PolicyOverrideArgs;
use gatewren_base::config::{Overrides, Policy, Preset, Spaces};
use gatewren_gate::auth::AgentSpec;
use gatewren_gate::owner_actions::{DEFAULT_EXPIRY, Expiry, choose_space, fit_name};
use gatewren_store::vault::OfferedTool;

/// The agent to create.
#[derive(Debug, clap::Args)]
pub struct NewAgentArgs {
    /// The name of the agent
    name: String,

    /// The preset that its policy is based on: observe, suggest, operate or admin
    #[arg(long, value_name = "PRESET", default_value = "observe")]
    policy: Preset,

    /// The space that the agent is limited to, or '*' for the host and all containers; required if the settings
    /// have spaces
    #[arg(long, value_name = "NAME")]
    space: Option<String>,

    /// When its token expires: after 30d, on 2027-01-31, or never
    #[arg(long, value_name = "WHEN", default_value = DEFAULT_EXPIRY)]
    expires: Expiry,

    #[command(flatten)]
    options: PolicyOverrideArgs,
}

impl NewAgentArgs {
    /// Returns the admission for the vault.
    pub fn admission(&self, spaces: &Spaces, tools: &[OfferedTool]) -> Result<AgentSpec, String> {
        let mut overrides = Overrides::default();
        self.options.apply(&mut overrides, tools)?;
        Ok(AgentSpec {
            name: fit_name(&self.name)?,
            policy: Policy {
                preset: self.policy,
                overrides,
            },
            space: choose_space(self.space.as_deref(), spaces)?,
            expires_ms: self.expires.0,
        })
    }
}
