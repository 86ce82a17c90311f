//! Performs one operation, if the owner's policy file allows it.

use gatewren_wire::operations::{ContainerRef, Operation, OperationEnd, OperationRefusal};

use super::{
    container_operations, container_overview, events, host_operations, policy_check, runtime_report,
};
use crate::backup::operations;
use crate::context::containers::RunningContainer;
use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::context::tools;
use crate::host::{mail, update_run, updates};
use crate::lxc::config_files;
use crate::lxc::paths::{existing, inside};
use crate::lxc::vitals::{lines, measure, vitals, vitals_and_usage};
use crate::processes::commands::{require_root, run_in_container, run_on_host};
use crate::processes::printing::print;
use crate::processes::step_error::{StepError, step_end};
use crate::systemd::{journal, power, units};

/// Checks an operation against the owner's policy file.
pub fn check(helper: &HelperContext, operation: &Operation) -> Result<(), OperationRefusal> {
    // One snapshot of the policy for the whole check.
    let policy = helper.policy.now();
    if let Some(container) = operation.container()
        && !policy.allows_container(container.as_str())
    {
        // As if it did not exist: the front does not learn which containers are hidden from it.
        return Err(helper.containers.absence_refusal(container));
    }
    policy_check::check(&policy, operation)
}

/// The refusal of an operation on jobs inside a job.
const JOB_OF_A_JOB: &str = "a job cannot query or control jobs";

/// Checks and performs an operation.
pub async fn perform(
    context: &mut OperationContext<'_>,
    operation: &Operation,
) -> Result<OperationEnd, OperationRefusal> {
    check(context.helper, operation)?;
    match operation {
        Operation::Ping {} => Ok(OperationEnd::SUCCESS),
        Operation::Bounds {} => step_end(policy_check::report(context).await),
        Operation::HostCommand { command } => run_on_host(context, command).await,
        Operation::ContainerCommand {
            container,
            command,
            on_host,
        } => run_in_container(context, container, command, *on_host).await,
        Operation::ContainerConfig { container } => config(context, container).await,
        Operation::ContainerOsRelease { container } => os_release(context, container).await,
        Operation::ContainerDisk { container } => disk(context, container).await,
        Operation::ContainerVitals { .. }
        | Operation::ContainerCounters {}
        | Operation::ContainerOverview {} => step_end(of_many(context, operation).await),
        Operation::ContainerEvents {} => events::report(context).await,
        Operation::ContainerInfo { .. }
        | Operation::ContainerStart { .. }
        | Operation::ContainerStop { .. }
        | Operation::ContainerAction { .. }
        | Operation::ContainerCreate { .. } => {
            container_operations::perform(context, operation).await
        }
        Operation::Mail(letter) => mail::send(context, letter).await,
        Operation::Backup { action } => operations::perform(context, action).await,
        Operation::ContainerList {} => step_end(container_operations::list(context).await),
        Operation::RuntimeReport {} => step_end(runtime_report::report(context).await),
        Operation::Restart { plan } => power::schedule(context, "reboot", plan).await,
        Operation::Shutdown { plan } => power::schedule(context, "poweroff", plan).await,
        Operation::CancelShutdown {} => power::cancel(context).await,
        Operation::UpdateCheck { .. }
        | Operation::UpdateRefresh { .. }
        | Operation::UpdateApply(_)
        | Operation::UpdateHistory { .. } => updates::perform(context, operation).await,
        Operation::UpdateRun(order) => update_run::perform(context, order).await,
        Operation::HostLog { .. }
        | Operation::ContainerLog { .. }
        | Operation::HostBoots {}
        | Operation::HostUptimeHistory {}
        | Operation::ContainerBoots { .. } => journal::read(context, operation).await,
        Operation::UnitChange { .. }
        | Operation::ContainerUnitList { .. }
        | Operation::ContainerUnit { .. }
        | Operation::ContainerUnitChange { .. } => units::perform(context, operation).await,
        Operation::JobStart { .. }
        | Operation::JobList { .. }
        | Operation::JobWait { .. }
        | Operation::JobOutput { .. }
        | Operation::JobCancel { .. }
        | Operation::JobForget { .. }
        | Operation::JobEnds {} => Err(OperationRefusal::bad_command(JOB_OF_A_JOB)),
        other => host_operations::perform(context, other).await,
    }
}

async fn config(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
) -> Result<OperationEnd, OperationRefusal> {
    let path = existing(context.helper, container)?;
    print(context.relay, move || config_files::config(&path)).await
}

/// Performs an operation that prints facts about many containers.
async fn of_many(
    context: &mut OperationContext<'_>,
    operation: &Operation,
) -> Result<OperationEnd, StepError> {
    match operation {
        Operation::ContainerVitals { container } => {
            container_vitals(context, container.as_ref()).await
        }
        Operation::ContainerOverview {} => container_overview::print_all(context).await,
        _ => container_counters(context).await,
    }
}

/// Prints the state of one container with its usage, or the state of all that are known to run.
async fn container_vitals(
    context: &mut OperationContext<'_>,
    container: Option<&ContainerRef>,
) -> Result<OperationEnd, StepError> {
    let helper = context.helper;
    require_root()?;
    if let Some(name) = container {
        let running = context.relay.wait(helper.containers.alive(name)).await??;
        let name = name.clone();
        let of_one = move || Ok(lines(vitals_and_usage(name, &running)));
        return Ok(print(context.relay, of_one).await?);
    }
    let running = visible_running(helper);
    let of_all = move || {
        let all = running.into_iter();
        Ok(lines(
            all.filter_map(|(name, running)| vitals(name, &running)),
        ))
    };
    Ok(print(context.relay, of_all).await?)
}

/// Prints the counters of all containers that are known to run.
async fn container_counters(context: &mut OperationContext<'_>) -> Result<OperationEnd, StepError> {
    require_root()?;
    let running = visible_running(context.helper);
    let of_all = move || {
        let all = running.into_iter();
        Ok(lines(
            all.filter_map(|(name, running)| measure(name, &running)),
        ))
    };
    Ok(print(context.relay, of_all).await?)
}

/// Returns the containers that are known to run, without those that the policy file hides.
fn visible_running(helper: &HelperContext) -> Vec<(ContainerRef, RunningContainer)> {
    let mut running = helper.containers.still_running();
    let policy = helper.policy.now();
    running.retain(|(name, _)| policy.allows_container(name.as_str()));
    running
}

async fn os_release(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
) -> Result<OperationEnd, OperationRefusal> {
    let root = inside(context.helper, container).await?;
    print(context.relay, move || config_files::os_release(&root)).await
}

/// Prints the size of the root file system, without other mounts in it. Stops when the caller's time is over.
async fn disk(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
) -> Result<OperationEnd, OperationRefusal> {
    let root = inside(context.helper, container).await?;
    let tool = tools::HostTool {
        name: "du",
        // du opens only directories; `/.` follows the link to this one.
        args: ["-sx", "--block-size=1", "--"]
            .map(str::to_owned)
            .into_iter()
            .chain([format!("{}/.", root.path().display())])
            .collect(),
    };
    context.run_tool(&tool).await
}
