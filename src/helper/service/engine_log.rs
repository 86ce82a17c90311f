//! Prints what a container of an engine printed, a JSON object a line.

use gatewren_wire::operations::{
    ContainerRef, LogCursor, OperationEnd, OperationRefusal, PrintedHeader, PrintedLine,
};

use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::engines::clients::refusal;
use crate::engines::{
    EngineLog, EngineLogLine, EngineLogOrder, EngineLogPosition, EngineLogRequest, EngineLogStream,
    MAX_LOG_LINES,
};
use crate::processes::answers::line;
use crate::processes::commands::require_root;
use crate::processes::printing::print;
use crate::processes::step_error::StepError;

/// The most bytes of an answer. Further lines are left out, and the header says so.
const MAX_BYTES: usize = 512 * 1024;

const NS_PER_MS: u64 = 1_000_000;

/// Which lines a caller wants.
#[derive(Debug, Clone, Copy)]
pub struct WantedLines<'a> {
    /// The most lines.
    pub lines: u32,
    /// Only lines after this one.
    pub after: Option<&'a LogCursor>,
    /// Only lines before this one.
    pub before: Option<&'a LogCursor>,
}

/// Prints the lines.
pub async fn print_lines(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    wanted: &WantedLines<'_>,
) -> Result<OperationEnd, StepError> {
    require_root()?;
    let read = read_log(context.helper, container, wanted);
    let log = context.relay.wait(read).await??;
    let is_forward = wanted.after.is_some();
    Ok(print(context.relay, move || Ok(answer(&log, is_forward))).await?)
}

async fn read_log(
    helper: &HelperContext,
    container: &ContainerRef,
    wanted: &WantedLines<'_>,
) -> Result<EngineLog, OperationRefusal> {
    let api = helper.containers.api(container).await?;
    let inspected = helper.containers.inspect(container).await?;
    let request = EngineLogRequest {
        has_tty: inspected.has_tty,
        order: match wanted.after {
            Some(_) => EngineLogOrder::Oldest,
            None => EngineLogOrder::Newest,
        },
        max_lines: wanted.lines.clamp(1, MAX_LOG_LINES),
        stream: None,
        after: wanted.after.map(position).transpose()?,
        before: wanted.before.map(position).transpose()?,
        since_ms: None,
        until_ms: None,
    };
    let log = api.logs(&inspected.id, &request).await;
    log.map_err(|error| refusal(&error))
}

fn position(cursor: &LogCursor) -> Result<EngineLogPosition, OperationRefusal> {
    let parsed = cursor.as_str().parse();
    parsed.map_err(|error| OperationRefusal::bad_command(format!("{error}")))
}

/// Returns the header and the lines, at most [`MAX_BYTES`] of them: the first ones of a log that is read forward, else
/// the last ones.
fn answer(log: &EngineLog, is_forward: bool) -> Vec<u8> {
    let printed: Vec<Vec<u8>> = log.lines.iter().filter_map(printed).collect();
    let mut kept = Vec::new();
    let mut bytes = 0;
    let mut add = |one: Vec<u8>| {
        bytes += one.len();
        let fits = bytes <= MAX_BYTES;
        kept.extend(fits.then_some(one));
        fits
    };
    let is_whole = if is_forward {
        printed.into_iter().all(&mut add)
    } else {
        printed.into_iter().rev().all(&mut add)
    };
    if !is_forward {
        kept.reverse();
    }
    let header = PrintedHeader {
        has_more: log.has_more || !is_whole,
    };
    [vec![line(&header)], kept].concat().concat()
}

fn printed(of: &EngineLogLine) -> Option<Vec<u8>> {
    Some(line(&PrintedLine {
        cursor: of.position.to_string().parse().ok()?,
        time_ms: of.position.time_ns / NS_PER_MS,
        is_stderr: of.stream == EngineLogStream::Stderr,
        text: of.text.clone(),
        is_cut: of.is_cut,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::engine_log::*;

    fn log(lines: usize) -> EngineLog {
        let one = |number| EngineLogLine {
            position: EngineLogPosition {
                time_ns: number as u64 * NS_PER_MS,
                number: 1,
            },
            stream: EngineLogStream::Stdout,
            text: "x".repeat(16 << 10),
            is_cut: false,
        };
        EngineLog {
            lines: (0..lines).map(one).collect(),
            has_more: false,
        }
    }

    #[test]
    fn an_answer_is_cut_at_the_far_end_and_says_so() {
        for (lines, is_forward, more) in [(3, true, false), (100, true, true), (100, false, true)] {
            let answer = answer(&log(lines), is_forward);
            assert!(answer.len() < MAX_BYTES + 100);
            let mut parts = answer.split(|byte| *byte == b'\n');
            let header: PrintedHeader = serde_json::from_slice(parts.next().unwrap()).unwrap();
            assert_eq!(header.has_more, more, "{lines}");
            let lines: Vec<PrintedLine> = parts
                .filter(|part| !part.is_empty())
                .map(|part| serde_json::from_slice(part).unwrap())
                .collect();
            let first = lines.first().unwrap().time_ms;
            assert_eq!(first == 0, is_forward, "{first}");
            assert!(lines.is_sorted_by_key(|line| line.time_ms));
        }
    }
}
