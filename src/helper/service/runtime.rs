//! What the operations on containers need of a container runtime. Each runtime is one implementation of this trait.
//!
//! A further runtime, such as systemd-nspawn or Incus, needs: a word in `RuntimeKind`; an implementation of this trait
//! in a file of this folder; a branch in `HostContainers::ask`, which says whether a container runs and which process
//! is its first; and a [`CommandEntry`](crate::context::containers::CommandEntry), which says how a command enters it
//! as a child of the helper, with three descriptors and in a given cgroup. Everything else works with the first
//! process: usage, ports, files, journal, units, and killing what a command started.

use std::fmt::Write as _;

use gatewren_wire::operations::{ContainerAction, ContainerRef, OperationEnd, OperationRefusal};

use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::engines::ListedContainer;
use crate::lxc::network::NetworkNamespace;
use crate::processes::step_error::StepError;

/// A container that exists.
pub struct FoundContainer {
    /// Its reference.
    pub name: ContainerRef,
    /// What the list of its engine shows, if that is one that root runs on this host.
    pub listed: Option<ListedContainer>,
}

/// A container runtime. Every function checks nothing of the owner's policy; that was done before.
pub trait ContainerRuntime {
    /// Returns its containers.
    ///
    /// # Errors
    /// Fails if the runtime is not installed or does not answer.
    async fn list(&self, helper: &HelperContext) -> Result<Vec<FoundContainer>, OperationRefusal>;

    /// Prints state, first process and addresses of a container, one line each, in the format of `lxc-info`.
    async fn print_info(
        &self,
        context: &mut OperationContext<'_>,
        container: &ContainerRef,
    ) -> Result<OperationEnd, StepError>;

    /// Starts a container.
    async fn start(
        &self,
        context: &mut OperationContext<'_>,
        container: &ContainerRef,
    ) -> Result<OperationEnd, StepError>;

    /// Stops a container: asks it to end, and kills it after the grace period in seconds.
    async fn stop(
        &self,
        context: &mut OperationContext<'_>,
        container: &ContainerRef,
        grace_s: u32,
    ) -> Result<OperationEnd, StepError>;

    /// Performs another action on a container.
    async fn act(
        &self,
        context: &mut OperationContext<'_>,
        container: &ContainerRef,
        action: &ContainerAction,
    ) -> Result<OperationEnd, StepError>;
}

impl FoundContainer {
    /// Returns a container that nothing but the reference is known of.
    pub fn named(name: ContainerRef) -> Self {
        Self { name, listed: None }
    }
}

/// Returns the state, the first process and its addresses in the format of `lxc-info`.
pub fn info_lines(state: &str, init: Option<i32>) -> String {
    let mut lines = format!("State: {state}\n");
    if let Some(init) = init {
        let _ = writeln!(lines, "PID: {init}");
        for address in NetworkNamespace::of(init).addresses() {
            let _ = writeln!(lines, "IP: {address}");
        }
    }
    lines
}
