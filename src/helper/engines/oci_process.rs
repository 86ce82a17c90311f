//! The process that an OCI runtime starts in a container for a call: the container's own settings, around the reaper.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use serde_json::{Value, json};

use gatewren_base::sys::{InsideRoot, sealed_bytes};
use gatewren_wire::operations::{Command, OperationRefusal};

use super::oci::{OciContainer, OciRuntime};
use crate::context::helper_context::reaper_argv;
use crate::processes::accounts::{Account, account, groups};

/// The most bytes of a container's passwd or group file. The rest is not read.
const MAX_ACCOUNTS_BYTES: u64 = 1 << 20;

/// The path of descriptor 6, the description of the process.
const PROCESS_PATH: &str = "/proc/self/fd/6";

/// How many descriptors the runtime passes on, from 3: the two pipes of the reaper, and its program.
const PASSED: &str = "3";

/// A process in a container, ready to be started.
#[derive(Debug)]
pub struct OciProcess {
    /// The runtime's program.
    pub program: CString,
    /// Its arguments.
    pub argv: Vec<CString>,
    /// The description of the process, passed as descriptor 6.
    pub description: File,
    /// The command with the container's environment and directory where the call names none.
    pub command: Command,
}

impl OciContainer {
    /// Prepares a command in the container. `cgroup` is the name of the call's cgroup below the container's own.
    ///
    /// The runtime confines the process as it confines the container: capabilities, system call filter, limits,
    /// namespaces and labels come from the container's configuration.
    ///
    /// # Errors
    /// Fails if the user is unknown in the container.
    pub fn prepare(
        &self,
        root: &InsideRoot,
        command: &Command,
        cgroup: Option<&str>,
    ) -> Result<OciProcess, OperationRefusal> {
        let mut process = self.process.clone();
        let own = process.get("user").map(uid);
        let named = command.user.as_ref().map(|name| user(root, name));
        let named = named.transpose()?;
        let is_another_user = named.as_ref().is_some_and(|user| own != Some(uid(user)));
        let command = self.in_container(command, is_another_user);
        if let Some(user) = named {
            process.insert("user".to_owned(), user);
        }
        let reaper = reaper_argv().map(|word| word.to_string_lossy().into_owned());
        process.insert("args".to_owned(), json!(reaper));
        process.insert("terminal".to_owned(), json!(false));
        // The reaper enters the command's directory, and says so if it cannot.
        process.insert("cwd".to_owned(), json!("/"));
        process.remove("consoleSize");
        let description = sealed_bytes(Value::Object(process).to_string().as_bytes());
        let description = description.map_err(|e| failed(&e))?;
        Ok(OciProcess {
            program: word(self.program.as_os_str().as_bytes())?,
            argv: self.argv(cgroup)?,
            description,
            // The runtime has set the user.
            command: Command {
                user: None,
                ..command
            },
        })
    }

    fn argv(&self, cgroup: Option<&str>) -> Result<Vec<CString>, OperationRefusal> {
        let mut argv = vec![
            word(self.program.as_os_str().as_bytes())?,
            c"--root".to_owned(),
            word(self.root.as_os_str().as_bytes())?,
            c"exec".to_owned(),
        ];
        if let Some(name) = cgroup {
            // runc wants the path from the container's cgroup to begin with a slash, crun without one.
            let path = match self.runtime {
                OciRuntime::Runc => format!("/{name}"),
                OciRuntime::Crun => name.to_owned(),
            };
            argv.extend([c"--cgroup".to_owned(), word(path.as_bytes())?]);
        }
        for argument in [
            "--preserve-fds",
            PASSED,
            "--process",
            PROCESS_PATH,
            &self.id,
        ] {
            argv.push(word(argument.as_bytes())?);
        }
        Ok(argv)
    }

    /// Returns the command with the container's environment below its own, and the container's directory if it names
    /// none.
    fn in_container(&self, command: &Command, is_another_user: bool) -> Command {
        let set = self.process.get("env").and_then(Value::as_array);
        let set = set.into_iter().flatten().filter_map(Value::as_str);
        let of_container = set
            .filter_map(|variable| variable.split_once('='))
            .filter(|(name, _)| !name.is_empty())
            // Podman sets that of the container's user, or an empty one; the reaper finds the user's own.
            .filter(|(name, value)| *name != "HOME" || !(is_another_user || value.is_empty()))
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let env: BTreeMap<String, String> = of_container.chain(command.env.clone()).collect();
        let usual = self.process.get("cwd").and_then(Value::as_str);
        Command {
            program: command.program.clone(),
            user: command.user.clone(),
            cwd: command.cwd.clone().or_else(|| usual.map(str::to_owned)),
            env,
        }
    }
}

/// Returns the user id in the description of a process.
fn uid(user: &Value) -> Option<u64> {
    user.get("uid").and_then(Value::as_u64)
}

/// Returns the user for the description of a process. A number without an account is taken as it is, with group 0, as
/// the engines do.
fn user(root: &InsideRoot, name: &str) -> Result<Value, OperationRefusal> {
    let file = |path: &str| {
        let read = root.read(path, 0, MAX_ACCOUNTS_BYTES);
        read.map_or_else(
            |_| String::new(),
            |(bytes, _)| String::from_utf8_lossy(&bytes).into_owned(),
        )
    };
    if let Some(account) = account(&file("etc/passwd"), name) {
        let groups = groups(&file("etc/group"), &account);
        let Account { uid, gid, .. } = account;
        let further: Vec<u32> = groups.into_iter().filter(|group| *group != gid).collect();
        return Ok(json!({ "uid": uid, "gid": gid, "additionalGids": further }));
    }
    match name.parse::<u32>() {
        Ok(uid) => Ok(json!({ "uid": uid, "gid": 0 })),
        Err(_) => Err(OperationRefusal::bad_command(format!(
            "user '{name}' not found in /etc/passwd of the container"
        ))),
    }
}

fn word(bytes: &[u8]) -> Result<CString, OperationRefusal> {
    CString::new(bytes).map_err(|e| failed(&io::Error::from(e)))
}

fn failed(cause: &io::Error) -> OperationRefusal {
    OperationRefusal::failed(format!("the command cannot be prepared: {cause}"))
}
