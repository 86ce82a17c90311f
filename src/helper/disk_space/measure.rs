//! Sizes of directories, counted by `du` within a time limit.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use gatewren_base::sys::source::text;
use gatewren_wire::operations::{DirectorySize, OperationRefusal, Stream};

use super::overlay_root::OverlayRoot;
use crate::context::orphans::Orphans;
use crate::context::tools::{HostTool, start};

/// The most bytes of the output that are read; `du` is ended then.
const OUTPUT_BYTES: usize = 4 * 1024 * 1024;

/// The most paths of one count; others are not counted.
const MAX_PATHS: usize = 2000;

/// What to count.
pub struct SizeRequest {
    /// The absolute paths, each with its content on its own file system.
    pub paths: Vec<String>,
    /// How many levels below each are listed separately.
    pub depth: u8,
    /// The least size that is listed, in bytes.
    pub least_bytes: u64,
    /// The most time for all together. After it, `du` is killed, and what it has counted is returned.
    pub time: Duration,
}

/// The counted sizes.
#[derive(Debug, Default)]
pub struct CountedSizes {
    /// The directories, each after those below it.
    pub sizes: Vec<DirectorySize>,
    /// Whether all was counted in time.
    pub is_complete: bool,
}

/// Counts. Files that disappear during the count are left out.
pub async fn count(
    request: SizeRequest,
    orphans: &Arc<Orphans>,
) -> Result<CountedSizes, OperationRefusal> {
    let end = Instant::now() + request.time;
    let mut all = CountedSizes {
        sizes: Vec::new(),
        is_complete: request.paths.len() <= MAX_PATHS,
    };
    let mountinfo = text("/proc/self/mountinfo").unwrap_or_default();
    let [on_root, others] = tools(&request, &mountinfo);
    let (on_root, others) = tokio::join!(
        run(on_root.as_ref(), end, orphans),
        run(others.as_ref(), end, orphans),
    );
    for counted in [on_root?, others?] {
        all.sizes.extend(counted.sizes);
        all.is_complete &= counted.is_complete;
    }
    Ok(all)
}

/// Runs a command that counts; without one, nothing is counted.
async fn run(
    tool: Option<&HostTool>,
    end: Instant,
    orphans: &Arc<Orphans>,
) -> Result<CountedSizes, OperationRefusal> {
    let Some(tool) = tool else {
        return Ok(CountedSizes {
            sizes: Vec::new(),
            is_complete: true,
        });
    };
    let (child, mut outputs) = start(tool, orphans)?;
    let mut text = Vec::new();
    let collect = async {
        loop {
            tokio::select! {
                exit = child.wait() => return exit.is_ok(),
                (which, bytes) = outputs.next() => {
                    if which == Stream::Stdout {
                        text.extend(bytes);
                    }
                    if text.len() > OUTPUT_BYTES {
                        return false;
                    }
                }
            }
        }
    };
    let has_ended = timeout_at(end, collect).await.unwrap_or(false);
    if !has_ended {
        child.kill();
        let _ = child.wait().await;
    }
    text.extend(outputs.rest(Stream::Stdout).flatten());
    Ok(CountedSizes {
        sizes: parse(&text),
        is_complete: has_ended,
    })
}

/// Returns the size of one file or directory, or an error if it was not counted in time.
pub async fn size_of(path: &str, orphans: &Arc<Orphans>) -> Result<u64, OperationRefusal> {
    /// Enough for a snapshot of some million files.
    const TIME: Duration = Duration::from_mins(5);
    let request = SizeRequest {
        paths: vec![path.to_owned()],
        depth: 0,
        least_bytes: 0,
        time: TIME,
    };
    let counted = count(request, orphans).await?;
    let size = counted.sizes.into_iter().next_back();
    let size = size.filter(|size| counted.is_complete && size.path == path);
    size.map(|size| size.bytes).ok_or_else(|| {
        OperationRefusal::failed("its size cannot be counted; it may be deleted already")
    })
}

/// Returns the commands that count: one for what lies on a root that is an overlay, and one for all else.
fn tools(request: &SizeRequest, mountinfo: &str) -> [Option<HostTool>; 2] {
    let root = OverlayRoot::of(mountinfo);
    let is_on_root = |path: &&str| root.as_ref().is_some_and(|root| root.holds(path));
    let paths = request.paths.iter().take(MAX_PATHS).map(String::as_str);
    let (on_root, others): (Vec<&str>, Vec<&str>) = paths.partition(is_on_root);
    let exclusions = root.iter().flat_map(OverlayRoot::exclusions).collect();
    let counts = [
        (on_root, exclusions),
        (others, vec!["--one-file-system".to_owned()]),
    ];
    counts.map(|(paths, limits)| (!paths.is_empty()).then(|| du(request, &paths, limits)))
}

fn du(request: &SizeRequest, paths: &[&str], mut args: Vec<String>) -> HostTool {
    args.extend(["--null", "--block-size=1"].map(str::to_owned));
    args.push(format!("--max-depth={}", request.depth));
    if request.least_bytes > 0 {
        args.push(format!("--threshold={}", request.least_bytes));
    }
    args.push("--".to_owned());
    let args = args.iter().map(String::as_str);
    HostTool::new("du", args.chain(paths.iter().copied()))
}

/// Parses `du`'s output; an incomplete last entry is left out.
fn parse(text: &[u8]) -> Vec<DirectorySize> {
    let whole = text.iter().rposition(|byte| *byte == 0).unwrap_or(0);
    let (whole, _) = text.split_at(whole);
    let entries = whole.split(|byte| *byte == 0).filter_map(|entry| {
        let (bytes, path) = std::str::from_utf8(entry).ok()?.split_once('\t')?;
        Some(DirectorySize {
            path: path.to_owned(),
            bytes: bytes.parse().ok()?,
        })
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use gatewren_base::sys::Scratch;

    #[test]
    fn what_was_cut_off_is_left_out() {
        let sizes = parse(b"10\t/a\x0020\t/b c\x003");
        let paths: Vec<&str> = sizes.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, ["/a", "/b c"]);
        assert!(parse(b"").is_empty() && parse(b"12\t/x").is_empty());
    }

    #[tokio::test]
    async fn a_count_has_its_levels_and_a_time_limit() {
        let scratch = Scratch::new();
        std::fs::create_dir_all(scratch.join("a/b/c")).unwrap();
        std::fs::write(scratch.join("a/b/c/big"), vec![1; 1 << 20]).unwrap();
        let request = |path: &Path, time| SizeRequest {
            paths: vec![path.display().to_string()],
            depth: 1,
            least_bytes: 1 << 19,
            time,
        };
        let orphans = Arc::new(Orphans::default());
        let counted = count(request(scratch.path(), Duration::from_secs(20)), &orphans).await;
        let counted = counted.unwrap();
        assert!(counted.is_complete);
        let paths: Vec<&str> = counted.sizes.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                scratch.join("a").to_str().unwrap(),
                scratch.path().to_str().unwrap()
            ]
        );
        let cut = count(request(Path::new("/"), Duration::ZERO), &orphans).await;
        let cut = cut.unwrap();
        assert!(!cut.is_complete);
    }
}
