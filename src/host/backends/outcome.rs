//! The result of a command, as the tools return it.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::helper_client::{Capture, CapturedOutput, FinishedOperation, KillReason, OperationEnd};

use super::error::BackendError;

/// How much of both outputs together is shown: 40 kB, the beginning and the end.
const INLINE: Capture = Capture {
    head: 24 * 1024,
    tail: 16 * 1024,
};

/// How a command ended and what it printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ShellOutcome {
    /// Whether the command ended by itself with exit code 0.
    pub succeeded: bool,
    /// The exit code, if the command ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The number of the signal that ended it, if this server did not send it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Whether it hit the timeout and was killed with all processes that it started.
    pub timed_out: bool,
    /// Why it was killed, if it was: `timeout`, `output`, `cancelled`, `shutdown`, `memory` or `reaper lost`.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "kill_word")]
    #[schemars(with = "Option<&'static str>")]
    pub killed_because: Option<KillReason>,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// Standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Standard error, in the same way.
    pub stderr: String,
    /// Whether the middle of an output was cut.
    pub truncated: bool,
    /// The total bytes printed to standard output.
    pub stdout_bytes: u64,
    /// The total bytes printed to standard error.
    pub stderr_bytes: u64,
    /// A warning about processes that the call does not kill, or that the container stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// The bytes of standard output, if it is complete and not UTF-8.
    #[serde(skip)]
    pub stdout_raw: Option<Vec<u8>>,
    /// The captured outputs beyond the text above, by their names.
    #[serde(skip)]
    pub longer: Vec<(&'static str, CapturedOutput)>,
}

impl ShellOutcome {
    /// Builds the result from the helper's report.
    ///
    /// # Errors
    /// When the helper refused to run it.
    pub fn of(finished: FinishedOperation) -> Result<Self, BackendError> {
        let end = finished.ending;
        if let OperationEnd::Refused(refusal) = end {
            return Err(refusal.into());
        }
        let (mut stdout, mut stderr) = (finished.stdout, finished.stderr);
        let whole = [stdout.clone(), stderr.clone()];
        share(&mut stdout, &mut stderr);
        let longer = longer(whole, [&stdout, &stderr]);
        Ok(Self {
            succeeded: end.exit_code() == Some(0),
            exit_code: end.exit_code(),
            signal: end.signal(),
            timed_out: end.kill_reason() == Some(KillReason::Timeout),
            killed_because: end.kill_reason(),
            duration_ms: finished.duration_ms,
            stdout: stdout.text_lossy(),
            stderr: stderr.text_lossy(),
            truncated: stdout.truncated() || stderr.truncated(),
            stdout_bytes: stdout.total_bytes,
            stderr_bytes: stderr.total_bytes,
            note: None,
            stdout_raw: raw(stdout),
            longer,
        })
    }
}

/// Serializes why a command was killed as the word that the schema names.
#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde requires this signature"
)]
pub fn kill_word<S: Serializer>(why: &Option<KillReason>, to: S) -> Result<S::Ok, S::Error> {
    why.map(KillReason::as_str).serialize(to)
}

/// Returns the outputs that were cut to be shown.
fn longer(
    whole: [CapturedOutput; 2],
    shown: [&CapturedOutput; 2],
) -> Vec<(&'static str, CapturedOutput)> {
    let named = ["stdout", "stderr"].into_iter().zip(whole).zip(shown);
    let cut = named.filter(|((_, whole), shown)| {
        whole.head.len() + whole.tail.len() > shown.head.len() + shown.tail.len()
    });
    cut.map(|(whole, _)| whole).collect()
}

fn raw(output: CapturedOutput) -> Option<Vec<u8>> {
    let whole = !output.truncated();
    let bytes = [output.head, output.tail].concat();
    (whole && std::str::from_utf8(&bytes).is_err()).then_some(bytes)
}

/// Shrinks both to fit [`INLINE`]: each gets half, and one can use what the other leaves.
fn share(stdout: &mut CapturedOutput, stderr: &mut CapturedOutput) {
    let part = |whole: usize, others: usize| whole - others.min(whole / 2);
    let beside = |other: &CapturedOutput| Capture {
        head: part(INLINE.head, other.head.len()),
        tail: part(INLINE.tail, other.tail.len()),
    };
    let (for_stdout, for_stderr) = (beside(stderr), beside(stdout));
    stdout.shrink(for_stdout);
    stderr.shrink(for_stderr);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helper_client::{CapturedOutput, OperationRefusal, RefusalCode};

    fn finished(ending: OperationEnd) -> FinishedOperation {
        let capture = |text: &str, total_bytes| CapturedOutput {
            head: text.into(),
            tail: Vec::new(),
            total_bytes,
        };
        FinishedOperation {
            ending,
            duration_ms: 5,
            stdout: capture("out", 3),
            stderr: capture("err", 9),
        }
    }

    #[test]
    fn each_ending_has_its_own_shape() {
        let json =
            |ending| serde_json::to_value(ShellOutcome::of(finished(ending)).unwrap()).unwrap();
        let exited = json(OperationEnd::Exited { code: 2 });
        assert_eq!(
            (&exited["exit_code"], &exited["timed_out"]),
            (&2.into(), &false.into())
        );
        assert!(exited.get("signal").is_none() && exited.get("killed_because").is_none());
        assert_eq!(
            (&exited["truncated"], &exited["stderr_bytes"]),
            (&true.into(), &9.into())
        );
        let killed = json(OperationEnd::Killed {
            why: KillReason::Timeout,
        });
        assert_eq!(
            (&killed["timed_out"], &killed["killed_because"]),
            (&true.into(), &"timeout".into())
        );
        assert_eq!(killed["stdout"], "out");
        let well = json(OperationEnd::Exited { code: 0 });
        let of = |ended: &serde_json::Value| ended["succeeded"] == true;
        assert!(of(&well) && !of(&exited) && !of(&killed));
    }

    #[test]
    fn two_long_outputs_share_what_one_may_have_alone() {
        let long = || CapturedOutput {
            head: vec![b'h'; INLINE.head],
            tail: vec![b't'; INLINE.tail],
            total_bytes: 1 << 20,
        };
        let size = |c: &CapturedOutput| c.head.len() + c.tail.len();
        let (mut stdout, mut stderr) = (long(), long());
        share(&mut stdout, &mut stderr);
        assert_eq!((size(&stdout), size(&stderr)), (20 * 1024, 20 * 1024));
        let mut short = CapturedOutput {
            head: b"e".to_vec(),
            tail: vec![],
            total_bytes: 1,
        };
        let mut stdout = long();
        share(&mut stdout, &mut short);
        assert_eq!((size(&stdout), size(&short)), (40 * 1024 - 1, 1));
    }

    #[test]
    fn a_refusal_is_an_error_with_the_helpers_words() {
        let refused = OperationRefusal::new(RefusalCode::NotRunning, "stopped").into();
        let error = ShellOutcome::of(finished(refused)).unwrap_err();
        assert_eq!(error.message, "stopped");
    }
}
