//! A command as the caller requests it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A command with its user, directory and environment. The environment contains nothing but the variables listed
/// here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// What to run.
    pub program: Program,
    /// The user to run as; root when absent.
    #[serde(default)]
    pub user: Option<String>,
    /// The directory to start in; the user's home when absent.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Variables in addition to PATH, HOME, LANG and TERM.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// A shell line or an argument vector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// A line for the shell: `/bin/bash -c` on the host, `/bin/sh -c` in a container.
    Shell(String),
    /// A program and its arguments, with no shell between.
    Argv(Vec<String>),
}
