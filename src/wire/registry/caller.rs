//! The caller of a tool, as far as the tool may know it.

use std::sync::Arc;

use super::resource::Viewer;
use gatewren_base::config::Reach;

/// The caller, as far as a tool may know it; a tool makes no access decisions from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The agent's id.
    pub agent: Arc<str>,
    /// The agent's name.
    pub name: Arc<str>,
    /// Its policy's preset.
    pub policy: &'static str,
    /// Its space; `*` is the whole host.
    pub space: Arc<str>,
    /// The parts of the host that it can see.
    pub reach: Reach,
    /// Whether its list of tools has the schemas of answers. Otherwise the data of an answer is optional
    /// (2025-06-18, server/tools).
    pub has_answer_schemas: bool,
    /// The session of the call, in the stateful revisions; this is not the id that its client sends.
    pub session: Option<Arc<str>>,
}

impl Caller {
    /// The caller, as a viewer of resources.
    pub fn viewer(&self) -> Viewer {
        Viewer {
            agent: self.agent.clone(),
            reach: self.reach.clone(),
        }
    }
}
