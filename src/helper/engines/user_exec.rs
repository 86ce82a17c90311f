//! The program that enters a container of a user's Podman for a call: the user's Podman itself, as that user.
//!
//! The OCI runtime below it is not started as root: the user may change its state, which says what to enter.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;

use gatewren_base::config::find_distrust;
use gatewren_wire::operations::{Command, OperationRefusal};

use super::user_container::UserContainer;
use crate::context::helper_context::reaper_argv;
use crate::context::programs::{find, path_variable};

/// How many descriptors Podman passes on, from 3: the two pipes of the reaper, and its program.
const PASSED: &str = "3";

impl UserContainer {
    /// Returns the program that enters the container, and its arguments: the reaper is the command. The container's
    /// first process decides the environment and the directory, and the user if `command` names none.
    ///
    /// # Errors
    /// Fails if Podman is not installed, or if another than root could replace its program.
    pub fn exec(&self, command: &Command) -> Result<(CString, Vec<CString>), OperationRefusal> {
        let podman = find("podman")?;
        if let Some(problem) = find_distrust(&podman) {
            return Err(OperationRefusal::failed(problem.to_string()));
        }
        let program = word(podman.as_os_str().as_bytes())?;
        let mut argv = vec![
            c"podman".to_owned(),
            c"exec".to_owned(),
            c"--preserve-fds".to_owned(),
            word(PASSED.as_bytes())?,
        ];
        if let Some(user) = &command.user {
            argv.push(word(format!("--user={user}").as_bytes())?);
        }
        argv.push(word(self.id.as_bytes())?);
        argv.extend(reaper_argv());
        Ok((program, argv))
    }

    /// Returns the environment of that program: nothing of the helper's own.
    pub fn environment(&self) -> Result<Vec<CString>, OperationRefusal> {
        let runtime = self.user.runtime_directory();
        let variables = [
            ("HOME", self.user.home()),
            ("USER", self.user.name()),
            ("LOGNAME", self.user.name()),
            ("XDG_RUNTIME_DIR", &runtime.to_string_lossy()),
            ("LANG", "C.UTF-8"),
        ];
        let variables = variables.map(|(name, value)| word(format!("{name}={value}").as_bytes()));
        let mut all = variables.into_iter().collect::<Result<Vec<_>, _>>()?;
        all.push(path_variable());
        Ok(all)
    }
}

fn word(bytes: &[u8]) -> Result<CString, OperationRefusal> {
    CString::new(bytes)
        .map_err(|_| OperationRefusal::bad_command("a name contains a NUL character"))
}
