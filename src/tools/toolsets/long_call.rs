//! The job that the backend runs a long call's work as.

use std::pin::Pin;
use std::sync::Arc;

use gatewren_host::backends::{CallJob, JobObserver};
use gatewren_wire::registry::{Cx, LongCall};

/// Returns the job to run this call's work as; `None` if its tool is not marked as long.
pub fn call_job(cx: &Cx) -> Option<CallJob> {
    let long = cx.long_call()?;
    Some(CallJob {
        id: long.job().parse().ok()?,
        owner: cx.caller().agent.to_string(),
        tool: long.tool().to_owned(),
        observer: Box::new(CallObserver(long.clone())),
    })
}

/// Reports a job's events to its call.
struct CallObserver(Arc<LongCall>);

impl JobObserver for CallObserver {
    fn on_start(&self) {
        self.0.begin();
    }

    fn wait_for_cancel(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.0.wait_for_cancel())
    }

    fn on_end(&self) -> bool {
        self.0.end()
    }
}
