//! Runs a program of the host on files of a container, in a jail. The container's own programs never run.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use gatewren_base::sys::{InsideRoot, Jail, JailCommand, Spawn, run_in_jail};
use gatewren_wire::operations::{ContainerRef, OperationEnd, OperationRefusal};

use crate::context::containers::RunningContainer;
use crate::context::operation_context::OperationContext;
use crate::context::orphans::{Orphans, TrackedChild};
use crate::context::outputs::CommandOutputs;
use crate::context::programs::{find, path_variable};
use crate::context::tools;
use crate::context::tools::{HostTool, not_run};

/// The hidden subcommand that enters a jail.
pub const JAIL_NAME: &str = "__jail";

/// The exit code if the container has none of the files that the program needs. No program used here returns it.
const NOTHING_TO_READ: u8 = 118;

/// The exit code if the jail could not be created; the cause is on stderr.
const NO_JAIL: u8 = 119;

/// The files of a container that a program sees.
#[derive(Debug, Clone, Copy)]
pub struct ContainerView {
    /// Paths of which at least one must exist.
    pub needs: &'static [&'static str],
    /// Further paths, which may be missing.
    pub paths: &'static [&'static str],
    /// The message if none of `needs` exists, to follow the container's name: `has no journal`.
    pub absent: &'static str,
}

/// The argument of the jail's process.
#[derive(Debug, Serialize, Deserialize)]
struct JailOrder {
    init: i32,
    started: u64,
    needs: Vec<PathBuf>,
    paths: Vec<PathBuf>,
    program: PathBuf,
    argv: Vec<String>,
}

/// A program of the host that reads files of a running container.
#[derive(Debug, Clone, Copy)]
pub struct JailedTool<'a> {
    /// The program.
    pub tool: &'a HostTool,
    /// The files that it sees.
    pub view: &'a ContainerView,
    /// The container's name.
    pub container: &'a ContainerRef,
    /// The running container.
    pub running: &'a RunningContainer,
}

impl JailedTool<'_> {
    /// Runs the program and passes its output to the caller.
    ///
    /// # Errors
    /// Fails if the program is not installed on the host, or if the container has nothing to read.
    pub async fn run(
        &self,
        context: &mut OperationContext<'_>,
    ) -> Result<OperationEnd, OperationRefusal> {
        self.running.check_files(self.container)?;
        let absent = || {
            let message = format!("container '{}' {}", self.container, self.view.absent);
            OperationRefusal::failed(message)
        };
        if self.lacks_files() {
            return Err(absent());
        }
        let (child, outputs) = self.start(&context.helper.orphans)?;
        let ending = context.relay_output(child, outputs).await;
        let nothing = OperationEnd::Exited {
            code: NOTHING_TO_READ.into(),
        };
        if ending == nothing {
            return Err(absent());
        }
        Ok(ending)
    }

    /// Whether it is certain that none of the needed files exists, so that no process has to be started for it. Mounts
    /// below the container's root are not entered: one of them may never respond.
    fn lacks_files(&self) -> bool {
        let path = format!("/proc/{}/root", self.running.init);
        InsideRoot::open(Path::new(&path)).is_ok_and(|root| {
            // A container that is starting has the host's root.
            let is_of_the_host = root.is_at(Path::new("/")).unwrap_or(true);
            !is_of_the_host
                && self.view.needs.iter().all(|path| root.lacks(path))
                && self.running.still_runs()
        })
    }

    fn start(
        &self,
        orphans: &Arc<Orphans>,
    ) -> Result<(TrackedChild, CommandOutputs), OperationRefusal> {
        let name = self.tool.name;
        let order = serde_json::to_string(&self.order()?).map_err(|e| not_run(name, &e))?;
        let spawn = Spawn {
            // The helper's own program, even if an upgrade replaced its file.
            programs: vec![c"/proc/self/exe".to_owned()],
            argv: vec![
                c"gatewren".to_owned(),
                CString::new(JAIL_NAME).map_err(|e| not_run(name, &e))?,
                CString::new(order).map_err(|e| not_run(name, &e))?,
            ],
            ..Spawn::default()
        };
        tools::start_with_outputs(name, spawn, orphans)
    }

    fn order(&self) -> Result<JailOrder, OperationRefusal> {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        let name = [self.tool.name.to_owned()].into_iter();
        Ok(JailOrder {
            init: self.running.init,
            started: self.running.started,
            needs: paths(self.view.needs),
            paths: paths(self.view.paths),
            program: find(self.tool.name)?,
            argv: name.chain(self.tool.args.iter().cloned()).collect(),
        })
    }
}

/// The main function of the process that creates a jail and waits for the program in it.
pub fn jail() -> ExitCode {
    match enter() {
        Ok(Some(code)) => ExitCode::from(code),
        Ok(None) => ExitCode::from(NOTHING_TO_READ),
        Err(cause) => {
            // An error of this write cannot be reported anywhere.
            let _ = io::Write::write_fmt(
                &mut io::stderr(),
                format_args!("the container's files cannot be read: {cause}\n"),
            );
            ExitCode::from(NO_JAIL)
        }
    }
}

fn enter() -> io::Result<Option<u8>> {
    let order = std::env::args().nth(2).unwrap_or_default();
    let order: JailOrder = serde_json::from_str(&order)?;
    let jail = Jail {
        init: order.init,
        started: order.started,
        needs: order.needs,
        paths: order.paths,
    };
    let argv: Result<_, _> = order.argv.into_iter().map(CString::new).collect();
    let command = JailCommand {
        program: CString::new(order.program.as_os_str().as_bytes())?,
        argv: argv?,
        env: vec![
            path_variable(),
            c"LC_ALL=C.UTF-8".to_owned(),
            c"TZ=UTC".to_owned(),
        ],
    };
    run_in_jail(&jail, &command)
}
