//! `ssh_key_*`: SSH keys of the accounts that `helper.toml` names.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::toolsets::failure::failed;
use gatewren_host::backends::{Fingerprint, PublicKey, Ssh, SshAccount, SshKeyChange};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The toolset.
pub fn tools(ssh: Arc<Ssh>) -> Toolset<Ssh> {
    Toolset::new(ssh)
        .with_name("ssh")
        .tool("ssh_key_list", Risk::Read, list)
        .about(Scope::Host)
        .through(HelperClass::SshKeys)
        .titled("List SSH keys")
        .startos("ssh.list", &[])
        .tool("ssh_key_add", Risk::Persist, add)
        .about(Scope::Host)
        .through(HelperClass::SshKeys)
        .titled("Add an SSH key")
        .startos("ssh.add", &[])
        .tool("ssh_key_remove", Risk::Persist, remove)
        .about(Scope::Host)
        .through(HelperClass::SshKeys)
        .titled("Remove an SSH key")
        .startos("ssh.remove", &[])
}

/// List the SSH login keys of the accounts that the owner makes visible: fingerprint, type, comment, whether an agent
/// added it, and whether its line restricts its use. `ssh_key_remove` removes only keys that `ssh_key_add` added.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {}

#[derive(Serialize, JsonSchema)]
struct Listed {
    /// In the order of `helper.toml`.
    accounts: Vec<SshAccount>,
}

async fn list(ssh: Arc<Ssh>, List {}: List, cx: Cx) -> Result<Listed> {
    let accounts = ssh.keys(cx.reference()).await.map_err(failed)?;
    Ok(Listed { accounts })
}

/// Allow SSH login with a public key, permanently, and return its fingerprint. Ask the user first whose key it is.
/// Check with `ssh_key_list`.
///
/// Options before the key are rejected; an existing key is not changed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// The public key in one line, such as `ssh-ed25519 AAAA... who@where`.
    key: PublicKey,
    /// The account, as in `ssh_key_list`; optional if there is only one.
    account: Option<String>,
}

async fn add(ssh: Arc<Ssh>, asked: Add, cx: Cx) -> Result<SshKeyChange> {
    let done = ssh.add(asked.account, asked.key, cx.reference()).await;
    done.map_err(failed)
}

/// Remove an SSH key that was added through this server, and return the result. `ssh_key_list` shows the remaining
/// keys.
///
/// Open sessions continue; new logins fail. Keys added by the owner are not changed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Remove {
    /// The key's fingerprint, as `ssh_key_list` shows it.
    fingerprint: Fingerprint,
    /// The account, as in `ssh_key_list`; optional if there is only one.
    account: Option<String>,
}

async fn remove(ssh: Arc<Ssh>, asked: Remove, cx: Cx) -> Result<SshKeyChange> {
    let done = ssh
        .remove(asked.account, asked.fingerprint, cx.reference())
        .await;
    done.map_err(failed)
}
