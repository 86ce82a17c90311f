//! The context of one operation: the helper, the channel to the caller, and the limit of processes.

use std::sync::Arc;

use gatewren_wire::operations::{OperationEnd, OperationRefusal};

use super::helper_context::HelperContext;
use super::line_filter::LineFilter;
use super::orphans::TrackedChild;
use super::output_relay::OutputRelay;
use super::outputs::CommandOutputs;
use super::tools::{HostTool, start};

/// The context of one operation.
pub struct OperationContext<'a> {
    /// The helper's shared context.
    pub helper: &'a Arc<HelperContext>,
    /// Sends output to the caller, and signals that the operation has to end.
    pub relay: &'a mut OutputRelay,
    /// The most processes of each command.
    pub processes: u32,
}

impl OperationContext<'_> {
    /// Runs a tool and relays its output to the caller. Kills it if the call has to end.
    pub async fn run_tool(&mut self, tool: &HostTool) -> Result<OperationEnd, OperationRefusal> {
        let (child, outputs) = start(tool, &self.helper.orphans)?;
        Ok(self.relay_output(child, outputs).await)
    }

    /// The same, but only with the lines that pass a filter.
    pub async fn run_filtered_tool(
        &mut self,
        tool: &HostTool,
        filter: LineFilter,
    ) -> Result<OperationEnd, OperationRefusal> {
        let (child, mut outputs) = start(tool, &self.helper.orphans)?;
        outputs.set_filter(filter);
        Ok(self.relay_output(child, outputs).await)
    }

    /// Relays the output of a started program to the caller. Kills it if the call has to end.
    pub async fn relay_output(
        &mut self,
        child: TrackedChild,
        mut outputs: CommandOutputs,
    ) -> OperationEnd {
        let ended = async {
            let exit = child.wait().await;
            exit.map_or(OperationEnd::Exited { code: 1 }, OperationEnd::from)
        };
        let ending = self.relay.relay_until(&mut outputs, ended).await;
        if matches!(ending, OperationEnd::Killed { .. }) {
            child.kill();
            let _ = child.wait().await;
        }
        self.relay.drain(&mut outputs).await;
        ending
    }
}
