//! Marks a call's work as a job for its backend, if it takes long.

use std::pin::Pin;
use std::sync::Arc;

use gatewren_host::backends::{CallJob, JobObserver};
use gatewren_wire::registry::{Cx, LongCall};

/// Returns the job to keep this call's work as; `None` if its tool is not marked as long.
pub fn keep(cx: &Cx) -> Option<CallJob> {
    let long = cx.long_call()?;
    Some(CallJob {
        job: long.job().parse().ok()?,
        owner: cx.caller().agent.to_string(),
        tool: long.tool().to_owned(),
        ear: Box::new(Hearing(long.clone())),
    })
}

/// Reports a job's events to its call.
struct Hearing(Arc<LongCall>);

impl JobObserver for Hearing {
    fn begun(&self) {
        self.0.begin();
    }

    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.0.cancelled())
    }

    fn ended(&self) -> bool {
        self.0.end()
    }
}
