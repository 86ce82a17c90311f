//! Parses RAID arrays from `/proc/mdstat` (md(4)).

use schemars::JsonSchema;
use serde::Serialize;

/// A RAID array: several disks that work as one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MdArray {
    /// Its name, such as `md0`.
    pub name: String,
    /// Whether it is running.
    pub active: bool,
    /// Its RAID level, such as `raid1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Its disks, sorted.
    pub devices: Vec<String>,
    /// Its failed disks, sorted.
    pub failed: Vec<String>,
    /// The number of disks that it should have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<u32>,
    /// The number of working disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working: Option<u32>,
    /// The current action, such as `recovery`, `resync` or `check`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The progress of the action in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_percent: Option<f64>,
    /// The number of sectors that differed between its disks at the last check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mismatches: Option<u64>,
}

impl MdArray {
    /// Returns its problem, if it has one.
    pub fn problem(&self) -> Option<String> {
        let name = &self.name;
        match (self.expected, self.working) {
            _ if !self.active => Some(format!("{name} is not running")),
            (Some(expected), Some(working)) if working < expected => {
                Some(format!("{name}: {working} of {expected} disks work"))
            }
            _ if !self.failed.is_empty() => {
                Some(format!("{name}: failed disks: {}", self.failed.join(", ")))
            }
            _ => self
                .mismatches
                .filter(|sectors| *sectors > 0)
                .map(|sectors| format!("{name}: {sectors} sectors differ between its disks")),
        }
    }
}

/// Parses the whole file, which does not contain mismatches.
pub fn arrays(text: &str) -> Vec<MdArray> {
    let mut all: Vec<MdArray> = Vec::new();
    for line in text.lines() {
        match line.split_once(" : ") {
            Some((name, rest)) if name.starts_with("md") => all.push(first_line(name, rest)),
            _ => {
                if let Some(array) = all.last_mut().filter(|_| line.starts_with(' ')) {
                    further_line(array, line);
                }
            }
        }
    }
    all
}

/// Parses a line such as `active raid1 sdb1[1] sda1[0](F)`.
fn first_line(name: &str, rest: &str) -> MdArray {
    let words = || rest.split_whitespace();
    let disk = |word: &str| word.split_once('[').map(|(disk, _)| disk.to_owned());
    let mut devices: Vec<String> = words().filter_map(disk).collect();
    let failed = words().filter(|word| word.contains("(F)"));
    let mut failed: Vec<String> = failed.filter_map(disk).collect();
    devices.sort();
    failed.sort();
    let plain = |word: &&str| !word.contains('[') && !word.starts_with('(');
    MdArray {
        name: name.trim().to_owned(),
        active: words().next() == Some("active"),
        level: words().skip(1).find(plain).map(str::to_owned),
        devices,
        failed,
        expected: None,
        working: None,
        action: None,
        done_percent: None,
        mismatches: None,
    }
}

/// Parses `976630464 blocks super 1.2 [2/1] [U_]`, or
/// `[==>..]  recovery = 12.6% (1/9) finish=1.0min speed=1K/sec`.
fn further_line(array: &mut MdArray, line: &str) {
    let counts = line.split_whitespace().find_map(|word| {
        let (expected, working) = word.strip_prefix('[')?.strip_suffix(']')?.split_once('/')?;
        Some((expected.parse().ok()?, working.parse().ok()?))
    });
    if let Some((expected, working)) = counts {
        array.expected = Some(expected);
        array.working = Some(working);
    }
    if let Some((before, after)) = line.split_once(" = ") {
        let percent = after
            .split('%')
            .next()
            .and_then(|text| text.trim().parse().ok());
        array.action = before.split_whitespace().last().map(str::to_owned);
        array.done_percent = percent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the format of `/proc/mdstat` of Linux 6.1 (drivers/md/md.c): an array being rebuilt, a
    /// healthy one and an inactive one.
    const MDSTAT: &str = "Personalities : [raid1] [raid6] [raid5] [raid4]\n\
        md127 : active raid5 sde1[4] sdd1[2](F) sdc1[1] sdb1[0]\n      \
        5860144128 blocks super 1.2 level 5, 512k chunk, algorithm 2 [3/2] [UU_]\n      \
        [==>..................]  recovery = 12.6% (369242/2930072) finish=211.9min speed=201392K/sec\n      \
        bitmap: 3/22 pages [12KB], 65536KB chunk\n\n\
        md0 : active (auto-read-only) raid1 sda1[0] sdf1[1]\n      \
        976630464 blocks super 1.2 [2/2] [UU]\n\n\
        md1 : inactive sdg1[1](S)\n      976630464 blocks super 1.2\n\nunused devices: <none>\n";

    #[test]
    fn arrays_are_read() {
        let all = arrays(MDSTAT);
        let [rebuilt, well, stopped] = all.as_slice() else {
            panic!("{all:?}");
        };
        let differs = MdArray {
            mismatches: Some(128),
            ..well.clone()
        };
        assert_eq!(
            differs.problem().as_deref(),
            Some("md0: 128 sectors differ between its disks")
        );
        assert_eq!(
            (rebuilt.level.as_deref(), rebuilt.failed.as_slice()),
            (Some("raid5"), &["sdd1".to_owned()][..])
        );
        assert_eq!(
            (rebuilt.action.as_deref(), rebuilt.done_percent),
            (Some("recovery"), Some(12.6))
        );
        assert_eq!(
            rebuilt.problem().as_deref(),
            Some("md127: 2 of 3 disks work")
        );
        assert_eq!(
            (well.level.as_deref(), well.problem()),
            (Some("raid1"), None)
        );
        assert_eq!(well.devices, ["sda1", "sdf1"]);
        assert_eq!(stopped.problem().as_deref(), Some("md1 is not running"));
        assert_eq!(stopped.level, None);
        assert_eq!(arrays("Personalities : \nunused devices: <none>\n"), []);
    }
}
