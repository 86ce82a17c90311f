//! One step of an upgrade, whose output the helper reads itself.

use gatewren_wire::operations::{ContainerRef, OperationEnd, OperationRefusal};

use super::updates::run_step;
use crate::context::operation_context::OperationContext;
use crate::processes::step_error::StepError;

/// The longest error of a step, in characters.
const ERROR_CHARS: usize = 600;

/// The output of a step.
#[derive(Debug)]
pub struct UpdateStep {
    /// Whether it succeeded.
    pub succeeded: bool,
    /// The end of its stdout.
    pub stdout: String,
    /// Its errors, or the end of its stderr if it reports none, in one line.
    pub error: String,
}

/// Runs a step of the script, on the host or in a container. The caller gets its output as stderr.
///
/// # Errors
/// Fails if the container does not run, or has no apt.
pub async fn run_captured(
    context: &mut OperationContext<'_>,
    container: Option<&ContainerRef>,
    words: Vec<String>,
) -> Result<UpdateStep, StepError> {
    context.relay.begin_capture();
    let ending = run_step(context, container, words).await;
    let output = context.relay.end_capture();
    let stderr = String::from_utf8_lossy(&output.stderr);
    match ending? {
        OperationEnd::Killed { why } => Err(StepError::Killed(why)),
        OperationEnd::Exited { code: 127 } => {
            Err(OperationRefusal::failed(last_errors(&stderr)).into())
        }
        ending => Ok(UpdateStep {
            succeeded: ending == OperationEnd::SUCCESS,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            error: last_errors(&stderr),
        }),
    }
}

/// Returns apt's errors as one line.
fn last_errors(stderr: &str) -> String {
    let is_error = |line: &&str| line.starts_with("E:") || line.contains("Failed to fetch");
    let mut lines: Vec<&str> = stderr.lines().map(str::trim).filter(is_error).collect();
    if lines.is_empty() {
        lines.extend(stderr.lines().next_back());
    }
    lines.dedup();
    let text = lines.join("; ");
    let text = text.trim();
    if text.is_empty() {
        return "it failed without a message".to_owned();
    }
    text.chars()
        .filter(|c| !c.is_control())
        .take(ERROR_CHARS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_line_and_the_last_line_replaces_them() {
        let stderr = "W: slow\nE: Unable to locate package a\u{1b}\nE: broken\n";
        assert_eq!(
            last_errors(stderr),
            "E: Unable to locate package a; E: broken"
        );
        assert_eq!(last_errors("a\nlast\n"), "last");
        assert_eq!(last_errors(" \n"), "it failed without a message");
        assert_eq!(last_errors(&"x".repeat(2000)).len(), ERROR_CHARS);
    }
}
