//! What a tool hands to its backend so that work which takes long is kept as a job.

use std::pin::Pin;
use std::sync::Arc;

use crate::backends::{Ear, Keep};
use crate::registry::{Cx, LongCall};

/// As what the work of this call is kept; nothing where its tool does not say that its calls take long.
pub fn keep(cx: &Cx) -> Option<Keep> {
    let long = cx.long_call()?;
    Some(Keep {
        job: long.job().parse().ok()?,
        owner: cx.caller().agent.to_string(),
        tool: long.tool().to_owned(),
        ear: Box::new(Hearing(long.clone())),
    })
}

/// A call that hears of its job.
struct Hearing(Arc<LongCall>);

impl Ear for Hearing {
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
