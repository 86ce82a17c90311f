//! Where the helper is, and how the front gets one.

use std::path::PathBuf;

use super::build_error::BuildError;
use super::demo;
use gatewren_base::config::Settings;
use gatewren_host::helper_client::{ChildHelperOptions, HelperChild, HelperClient};

/// Where the helper is.
#[derive(Debug, Clone)]
pub enum HelperPlan {
    /// systemd runs it; it listens here.
    Socket(PathBuf),
    /// It is our child process.
    Child {
        /// The directory of its socket.
        directory: PathBuf,
        /// The owner's policy file for it; `None` for a trial, which only the standard file limits.
        policy: Option<PathBuf>,
        /// Sockets that are not where the policy says.
        sockets: EngineSockets,
    },
    /// There is none: this is a demo, with an invented server.
    Demo {
        /// The directory of the socket where this process answers instead.
        directory: PathBuf,
    },
}

impl HelperPlan {
    /// Whether this is a demo.
    pub fn is_demo(&self) -> bool {
        matches!(self, Self::Demo { .. })
    }
}

/// The sockets of Docker and Podman; `None` for those that the helper's policy names.
#[derive(Debug, Clone, Default)]
pub struct EngineSockets {
    /// Docker's.
    pub docker: Option<PathBuf>,
    /// Podman's.
    pub podman: Option<PathBuf>,
}

/// Starts the helper, or connects to the one that systemd runs.
pub(super) fn start_helper(
    plan: &HelperPlan,
    settings: &Settings,
) -> Result<(Option<HelperChild>, HelperClient), BuildError> {
    match plan {
        HelperPlan::Socket(path) => Ok((None, HelperClient::connect_to(path.clone()))),
        HelperPlan::Demo { directory } => Ok((None, demo::answer_in_process(directory)?)),
        HelperPlan::Child {
            directory,
            policy,
            sockets,
        } => {
            let exe = std::env::current_exe().map_err(BuildError::new)?;
            let state = settings.state_dir.join("helper");
            let options = ChildHelperOptions {
                lxcpath: settings.lxc.lxcpath.as_deref(),
                docker_socket: sockets.docker.as_deref(),
                podman_socket: sockets.podman.as_deref(),
                policy: policy.as_deref(),
                state: Some(&state),
                log: settings.log.level,
            };
            let started = HelperChild::spawn(&exe, directory, options);
            started
                .map(|(child, helper)| (Some(child), helper))
                .map_err(BuildError::new)
        }
    }
}
