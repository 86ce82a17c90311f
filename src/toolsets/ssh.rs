//! `ssh_key_*`: which keys may log in over SSH as the accounts that the owner's file names.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::failed;
use crate::backends::{Fingerprint, PublicKey, Ssh, SshAccount, SshKeyChange};
use crate::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The group, as a table.
pub fn tools(ssh: Arc<Ssh>) -> Toolset<Ssh> {
    Toolset::over(ssh)
        .named("ssh")
        .tool("ssh_key_list", Risk::Read, list)
        .about(Scope::Host)
        .through(HelperClass::SshKeys)
        .titled("List SSH keys")
        .startos("ssh.list", &[])
        .tool("ssh_key_add", Risk::Persist, add)
        .about(Scope::Host)
        .through(HelperClass::SshKeys)
        .titled("Let an SSH key log in")
        .startos("ssh.add", &[])
        .tool("ssh_key_remove", Risk::Persist, remove)
        .about(Scope::Host)
        .through(HelperClass::SshKeys)
        .titled("Take an SSH key away")
        .startos("ssh.remove", &[])
}

/// Lists the keys that may log in over SSH, for each account that the owner lets be seen: fingerprint, type, comment,
/// whether a key was added here, and whether its line bounds what it may do. Only those that were added here can be
/// taken away, with `ssh_key_remove`; `ssh_key_add` adds one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {}

#[derive(Serialize, JsonSchema)]
struct Listed {
    /// In the order of the owner's file.
    accounts: Vec<SshAccount>,
}

async fn list(ssh: Arc<Ssh>, List {}: List, cx: Cx) -> Result<Listed> {
    let accounts = ssh.keys(cx.reference()).await.map_err(failed)?;
    Ok(Listed { accounts })
}

/// Lets whoever has the private half of a key log in over SSH, for good, and returns its fingerprint. Options before
/// the key are refused, and of a key that is there already nothing is changed. Ask whose key it is before; next comes
/// `ssh_key_list`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// The public key as one line, such as `ssh-ed25519 AAAA... who@where`.
    key: PublicKey,
    /// As whom, as `ssh_key_list` names the accounts; may be left out where there is one.
    account: Option<String>,
}

async fn add(ssh: Arc<Ssh>, asked: Add, cx: Cx) -> Result<SshKeyChange> {
    let done = ssh.add(asked.account, asked.key, cx.reference()).await;
    done.map_err(failed)
}

/// Takes a key away that was added here, and returns what was done: it can no longer log in; who is logged in with it
/// stays. Keys that the owner has put there are not touched. `ssh_key_list` shows what is left.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Remove {
    /// The key's fingerprint, as `ssh_key_list` shows it.
    fingerprint: Fingerprint,
    /// As whom, as `ssh_key_list` names the accounts; may be left out where there is one.
    account: Option<String>,
}

async fn remove(ssh: Arc<Ssh>, asked: Remove, cx: Cx) -> Result<SshKeyChange> {
    let done = ssh
        .remove(asked.account, asked.fingerprint, cx.reference())
        .await;
    done.map_err(failed)
}
