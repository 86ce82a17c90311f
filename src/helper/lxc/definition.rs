//! Changes a container's definition: only known keys, and keeps the previous file next to it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use gatewren_base::sys::InsideRoot;
use gatewren_base::sys::files::read_bounded;
use gatewren_wire::operations::{ContainerRef, DefinitionChanges, OperationEnd, OperationRefusal};

use super::paths::require_plain_lxc;
use crate::context::definitions::CONFIG;
use crate::context::helper_context::HelperContext;
use crate::processes::answers::to_its_end;

/// The name of the previous definition, next to the current one.
const OLD: &str = "config.old";

/// The largest definition that is changed.
const MOST_BYTES: usize = 256 * 1024;

/// The least memory limit that is accepted: nothing starts with less.
const LEAST_MEMORY: u64 = 4 << 20;

/// The period for CPU quotas in microseconds, as in `cpu.max`.
const PERIOD_US: u64 = 100_000;

/// A key and its value; `None` removes the key's lines.
pub type Setting = (&'static str, Option<String>);

/// Sets whether the container starts with the host.
pub async fn autostart(
    helper: &HelperContext,
    name: &ContainerRef,
    on: bool,
) -> Result<OperationEnd, OperationRefusal> {
    let value = if on { "1" } else { "0" };
    set(
        helper,
        name,
        vec![("lxc.start.auto", Some(value.to_owned()))],
    )
    .await
}

/// Applies changes to a container's definition.
pub async fn configure(
    helper: &HelperContext,
    name: &ContainerRef,
    changes: &DefinitionChanges,
) -> Result<OperationEnd, OperationRefusal> {
    set(helper, name, settings(changes)?).await
}

async fn set(
    helper: &HelperContext,
    name: &ContainerRef,
    settings: Vec<Setting>,
) -> Result<OperationEnd, OperationRefusal> {
    let _claim = helper.locks.take(name)?;
    let file = require_plain_lxc(helper, name)?;
    to_its_end(move || {
        let text = read(&file)?;
        replace(&file, &edit_text(&text, &settings))
    })
    .await?;
    Ok(OperationEnd::SUCCESS)
}

/// Reads a definition.
pub fn read(file: &Path) -> Result<String, OperationRefusal> {
    let bytes = read_bounded(file, MOST_BYTES);
    let text = bytes
        .map(String::from_utf8)
        .map_err(|e| write_refusal(&e))?;
    text.map_err(|_| write_refusal(&"it is not valid UTF-8"))
}

/// Replaces a definition; the previous one stays as `config.old`.
pub fn replace(file: &Path, text: &str) -> Result<(), OperationRefusal> {
    let keep = || {
        let (old, mode) = (fs::read(file)?, fs::metadata(file)?.mode());
        directory(file)?.write(".", OLD, &old, Some(mode))
    };
    keep().map_err(|e| write_refusal(&e))?;
    write(file, text)
}

/// Replaces a definition.
pub fn write(file: &Path, text: &str) -> Result<(), OperationRefusal> {
    let write = || directory(file)?.write(".", CONFIG, text.as_bytes(), None);
    write().map(drop).map_err(|e| write_refusal(&e))
}

fn directory(file: &Path) -> io::Result<InsideRoot> {
    InsideRoot::open(file.parent().unwrap_or(file))
}

fn write_refusal(cause: &dyn std::fmt::Display) -> OperationRefusal {
    OperationRefusal::failed(format!(
        "the container's definition was not changed: {cause}"
    ))
}

fn settings(changes: &DefinitionChanges) -> Result<Vec<Setting>, OperationRefusal> {
    let DefinitionChanges {
        hostname,
        memory_limit_bytes,
        cpu_limit_percent,
        processes_limit,
        start_delay_s,
        start_order,
    } = changes;
    if memory_limit_bytes.is_some_and(|bytes| bytes != 0 && bytes < LEAST_MEMORY) {
        let words = format!("a container needs at least {LEAST_MEMORY} bytes of memory");
        return Err(OperationRefusal::bad_command(words));
    }
    let quota = |percent: u32| format!("{} {PERIOD_US}", u64::from(percent) * PERIOD_US / 100);
    let number =
        |key: &'static str, value: Option<u32>| value.map(|n| (key, set_or_none(n.into())));
    let memory = memory_limit_bytes.map(set_or_none);
    let cpu = cpu_limit_percent.map(|percent| (percent > 0).then(|| quota(percent)));
    Ok([
        hostname
            .as_ref()
            .map(|name| ("lxc.uts.name", Some(name.as_str().to_owned()))),
        memory.map(|limit| ("lxc.cgroup2.memory.max", limit)),
        cpu.map(|limit| ("lxc.cgroup2.cpu.max", limit)),
        number("lxc.cgroup2.pids.max", *processes_limit),
        number("lxc.start.delay", *start_delay_s),
        number("lxc.start.order", *start_order),
    ]
    .into_iter()
    .flatten()
    .collect())
}

fn set_or_none(number: u64) -> Option<String> {
    (number > 0).then(|| number.to_string())
}

/// Returns the definition with these settings: each replaces the last line of its key, or is appended.
pub fn edit_text(text: &str, settings: &[Setting]) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let mut added: Vec<(usize, String)> = Vec::new();
    for (key, value) in settings {
        let is_ours = |line: &&str| {
            let (name, _) = line.split_once('=').unwrap_or_default();
            name.trim() == *key
        };
        let place = lines.iter().rposition(is_ours).unwrap_or(lines.len());
        // Emptied, not removed, so that indices stay valid.
        for line in lines.iter_mut().filter(|line| is_ours(line)) {
            *line = GONE;
        }
        added.extend(
            value
                .as_ref()
                .map(|value| (place, format!("{key} = {value}"))),
        );
    }
    let mut out = String::with_capacity(text.len() + 256);
    for place in 0..=lines.len() {
        let here = added.iter().filter(|(at, _)| *at == place);
        let old = lines.get(place).copied().filter(|line| *line != GONE);
        for line in here.map(|(_, line)| line.as_str()).chain(old) {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// A value that no line can have.
const GONE: &str = "\n";

#[cfg(test)]
mod tests {
    use super::super::definition::*;

    const TEXT: &str =
        "# of the owner\nlxc.start.auto = 0\nlxc.uts.name = web\nlxc.start.auto=0\n\nlxc.x = 1";

    #[test]
    fn a_setting_takes_the_place_of_its_last_line_and_all_else_stays() {
        let on = [("lxc.start.auto", Some("1".to_owned()))];
        let expected = "# of the owner\nlxc.uts.name = web\nlxc.start.auto = 1\n\nlxc.x = 1\n";
        assert_eq!(edit_text(TEXT, &on), expected);
        assert_eq!(edit_text(expected, &on), expected);
        let none = [("lxc.start.auto", None), ("lxc.new", Some("2".to_owned()))];
        let expected = "# of the owner\nlxc.uts.name = web\n\nlxc.x = 1\nlxc.new = 2\n";
        assert_eq!(edit_text(TEXT, &none), expected);
        assert_eq!(edit_text("", &on), "lxc.start.auto = 1\n");
    }

    #[test]
    fn what_would_be_no_setting_is_refused() {
        for bad in ["", "-a", "a b", "a\nlxc.hook.start = /x", &"x".repeat(64)] {
            let changes = serde_json::json!({ "hostname": bad });
            assert!(
                serde_json::from_value::<DefinitionChanges>(changes).is_err(),
                "{bad:?}"
            );
        }
        let low = DefinitionChanges {
            memory_limit_bytes: Some(4096),
            ..DefinitionChanges::default()
        };
        assert!(settings(&low).is_err());
        let some = DefinitionChanges {
            hostname: Some("web".to_owned().try_into().unwrap()),
            memory_limit_bytes: Some(0),
            cpu_limit_percent: Some(150),
            start_order: Some(3),
            ..DefinitionChanges::default()
        };
        let lines = settings(&some).unwrap();
        let expected = [
            ("lxc.uts.name", Some("web")),
            ("lxc.cgroup2.memory.max", None),
            ("lxc.cgroup2.cpu.max", Some("150000 100000")),
            ("lxc.start.order", Some("3")),
        ];
        let lines: Vec<_> = lines
            .iter()
            .map(|(key, value)| (*key, value.as_deref()))
            .collect();
        assert_eq!(lines, expected);
    }
}
