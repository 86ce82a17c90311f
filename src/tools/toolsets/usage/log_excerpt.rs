//! The last lines of a container's log that look like errors.

use serde::Serialize;

use gatewren_base::sys::shorten;
use gatewren_host::backends::{
    BackendError, ContainerRef, JournalView, LogFile, LogPriority, LogQuery, LogSearch, LogSource,
    LxcView, RuntimeKind,
};

/// The most lines.
const LINES: usize = 20;

/// The longest line in characters; the rest is cut.
const LINE_CHARS: usize = 160;

/// How many lines are searched for errors where the log has no severities.
const SEARCHED_LINES: u32 = 300;

/// What lines about errors contain, in lower case.
const WORDS: [&str; 14] = [
    "error",
    "fail",
    "fatal",
    "panic",
    "exception",
    "critical",
    "traceback",
    "denied",
    "refused",
    "timed out",
    "timeout",
    "out of memory",
    "killed",
    "no space left",
];

/// Lines of a log.
#[derive(Debug, Clone, Serialize)]
pub struct LogExcerpt {
    /// The log.
    pub source: LogSource,
    /// The lines, oldest first. They are text of the container.
    pub lines: Vec<String>,
}

/// What logs are read through.
pub struct LogReaders {
    /// The containers.
    pub lxc: LxcView,
    /// The journals.
    pub journal: JournalView,
}

impl LogReaders {
    /// Returns the last lines about errors of a container that runs, and the last lines of one that does not.
    pub async fn excerpt(
        &self,
        container: &ContainerRef,
        runs: bool,
    ) -> Result<LogExcerpt, BackendError> {
        if container.runtime() != RuntimeKind::Lxc {
            let printed = self.lxc.printed(container, SEARCHED_LINES, None, None);
            let text = printed.await?.text;
            return Ok(pick(LogSource::Output, &text, runs));
        }
        if !runs {
            return match self.file(container, LogFile::Lxc, false).await {
                Ok(excerpt) if !excerpt.lines.is_empty() => Ok(excerpt),
                _ => self.file(container, LogFile::Console, false).await,
            };
        }
        match self.journal(container).await {
            Ok(excerpt) => Ok(excerpt),
            // It has no journal.
            Err(without) => match self.file(container, LogFile::Console, true).await {
                Ok(excerpt) => Ok(excerpt),
                Err(_) => Err(without),
            },
        }
    }

    async fn file(
        &self,
        container: &ContainerRef,
        log: LogFile,
        errors_only: bool,
    ) -> Result<LogExcerpt, BackendError> {
        let part = self.lxc.log_file(container, log, SEARCHED_LINES, None);
        let part = part.await?;
        Ok(pick(part.source, &part.text, errors_only))
    }

    async fn journal(&self, container: &ContainerRef) -> Result<LogExcerpt, BackendError> {
        let search = LogSearch {
            container: Some(container.clone()),
            most: LINES,
            query: LogQuery {
                priority: Some(LogPriority::Err),
                ..LogQuery::default()
            },
        };
        let page = self.journal.search(&search).await?;
        let text: Vec<String> = page.lines.iter().map(ToString::to_string).collect();
        Ok(pick(LogSource::Journal, &text.join("\n"), false))
    }
}

/// Returns the last lines of a text, or the last of those that look like errors.
fn pick(source: LogSource, text: &str, errors_only: bool) -> LogExcerpt {
    let is_error = |line: &&str| {
        let line = line.to_lowercase();
        WORDS.iter().any(|word| line.contains(word))
    };
    let wanted = |line: &&str| !line.trim().is_empty() && (!errors_only || is_error(line));
    let found: Vec<&str> = text.lines().filter(wanted).collect();
    let skipped = found.len().saturating_sub(LINES);
    let lines = found.iter().skip(skipped);
    LogExcerpt {
        source,
        lines: lines.map(|line| shorten(line, LINE_CHARS)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_errors_are_picked_and_long_lines_are_cut() {
        let mut text = "all is well\n".to_owned();
        for n in 0..30 {
            text += &[
                "line ",
                &n.to_string(),
                ": ERROR ",
                &"x".repeat(500),
                "\nfine\n",
            ]
            .concat();
        }
        let found = pick(LogSource::Output, &text, true);
        assert_eq!(found.lines.len(), LINES);
        assert!(
            found.lines[0].starts_with("line 10: ERROR"),
            "{:?}",
            found.lines[0]
        );
        assert!(
            found
                .lines
                .iter()
                .all(|line| line.chars().count() <= LINE_CHARS)
        );
        let all = pick(LogSource::Output, "a\n\nb\n", false);
        assert_eq!(all.lines, ["a", "b"]);
    }
}
