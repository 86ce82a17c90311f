//! The relevant units: failed ones, enabled ones, and those chosen by name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tokio::time::{Duration, Instant};

use crate::backends::{
    BackendError, ChangedUnits, ErrorKind, Systemd, SystemdView, Unit, UnitEvents, UnitFileState,
    UnitLine, UnitName,
};
use gatewren_base::config::{LiveSettings, Reach};
use gatewren_base::sys::{BurstRate, BurstUsage};

use super::unit_facts;

/// The maximum number of units in the document. Failed ones come first, then the others by name; the number of
/// missing ones is in `/public/observer/units`.
const MAX_UNITS: usize = 512;

/// The maximum number of units that wait for a look; if more were named, all units are examined instead.
const MAX_WAITING: usize = 4096;

/// How long signals are collected before the named units are examined: a start sends several.
const SETTLE: Duration = Duration::from_millis(100);

/// How often one unit may change the document. A unit that restarts continuously is examined only at this rate: the
/// document skips intermediate states, and ends with the final one.
const PER_UNIT: BurstRate = BurstRate {
    burst: 10,
    every: Duration::from_secs(30),
};

/// How often all units together may change the document, each time in one revision.
const ALTOGETHER: BurstRate = BurstRate {
    burst: 30,
    every: Duration::from_secs(1),
};

/// How often everything is examined because files have changed: systemd reads every unit file for that.
const FILES: BurstRate = BurstRate {
    burst: 10,
    every: Duration::from_secs(5),
};

/// The last known units, and the pending looks.
#[derive(Debug)]
pub struct ObservedUnits {
    systemd: SystemdView,
    live: LiveSettings,
    files: BTreeMap<UnitName, UnitFileState>,
    known: BTreeMap<UnitName, ObservedUnit>,
    left_out: BTreeSet<UnitName>,
    waiting: BTreeMap<UnitName, Instant>,
    files_at: Option<Instant>,
    usages: Usages,
}

#[derive(Debug)]
struct ObservedUnit {
    /// The unit's line in systemd's list; `None` while it is not loaded.
    line: Option<UnitLine>,
    entry: Value,
}

#[derive(Debug, Default)]
struct Usages {
    /// The usage of units that changed recently.
    units: BTreeMap<UnitName, BurstUsage>,
    altogether: BurstUsage,
    files: BurstUsage,
}

impl ObservedUnits {
    /// Creates an empty set; units whose names match a pattern of the settings are always relevant.
    pub fn new(systemd: &Systemd, live: LiveSettings) -> Self {
        Self {
            systemd: systemd.view_for(&Reach::everything()),
            live,
            files: BTreeMap::new(),
            known: BTreeMap::new(),
            left_out: BTreeSet::new(),
            waiting: BTreeMap::new(),
            files_at: None,
            usages: Usages::default(),
        }
    }

    /// Waits until the settings may have chosen other units.
    pub async fn wait_for_selection_change(&mut self) {
        self.live.changed().await;
    }

    /// `/public/units`.
    pub fn document(&self) -> Value {
        let entry =
            |(name, known): (&UnitName, &ObservedUnit)| (name.to_string(), known.entry.clone());
        Value::Object(self.known.iter().map(entry).collect())
    }

    /// Subscribes to all changes from now on.
    pub async fn events(&self) -> Result<UnitEvents, BackendError> {
        self.systemd.events().await
    }

    /// The number of relevant units that exceed the maximum.
    pub fn left_out(&self) -> usize {
        self.left_out.len()
    }

    /// Removes all units, because their state is no longer known.
    pub fn forget(&mut self) {
        self.known.clear();
        self.left_out.clear();
        self.waiting.clear();
        self.files_at = None;
    }

    /// Examines all units, each one in full.
    pub async fn look_at_all(&mut self) -> Result<(), BackendError> {
        self.usages.files.spend(FILES, Instant::now());
        self.files = self.systemd.files().await?;
        self.look(true).await?;
        self.files_at = None;
        self.waiting.clear();
        Ok(())
    }

    /// Reads the list of all units, and examines in full those that were named or have changed.
    pub async fn look_at_list(&mut self) -> Result<(), BackendError> {
        self.look(false).await?;
        self.waiting.clear();
        Ok(())
    }

    /// Schedules looks for a signal.
    pub fn schedule_looks(&mut self, news: ChangedUnits) {
        let settled = Instant::now() + SETTLE;
        let soon = self.usages.altogether.allowed_at(ALTOGETHER, settled);
        let too_many = self.waiting.len() + news.units.len() > MAX_WAITING;
        if news.files || news.reloaded || too_many {
            let at = self.usages.files.allowed_at(FILES, soon);
            self.files_at.get_or_insert(at);
        }
        if too_many {
            return;
        }
        for name in news.units {
            let usage = self.usages.units.get(&name).copied().unwrap_or_default();
            let at = usage.allowed_at(PER_UNIT, soon);
            self.waiting.entry(name).or_insert(at);
        }
    }

    /// When the next look is due, if any.
    pub fn next_look(&self) -> Option<Instant> {
        let earliest = self.waiting.values().chain(&self.files_at).min();
        earliest.copied()
    }

    /// Runs the looks that are due.
    pub async fn catch_up(&mut self) -> Result<(), BackendError> {
        let now = Instant::now();
        if self.files_at.is_some_and(|at| at <= now) {
            return self.look_at_all().await;
        }
        let due = self.waiting.iter().filter(|(_, at)| **at <= now);
        let due: Vec<UnitName> = due.map(|(name, _)| name.clone()).collect();
        let lines = self.systemd.list_loaded(&due).await?;
        let mut changed = false;
        for name in due {
            let line = lines.iter().find(|line| line.name == name);
            changed |= self.look_at(&name, line).await?;
            self.waiting.remove(&name);
        }
        if changed {
            self.usages.altogether.spend(ALTOGETHER, now);
        }
        Ok(())
    }

    async fn look(&mut self, in_full: bool) -> Result<(), BackendError> {
        let lines = self.systemd.list().await?;
        let lines: BTreeMap<&UnitName, &UnitLine> =
            lines.iter().map(|line| (&line.name, line)).collect();
        let names = self.names_that_matter(&lines);
        self.known.retain(|name, _| names.contains(name));
        for name in names {
            let line = lines.get(&name).copied();
            let known = self.known.get(&name);
            let same = known.is_some_and(|known| known.line.as_ref() == line);
            if in_full || !same || self.waiting.contains_key(&name) {
                self.look_at(&name, line).await?;
            }
        }
        Ok(())
    }

    /// The relevant units up to the maximum, failed ones first.
    fn names_that_matter(&mut self, lines: &BTreeMap<&UnitName, &UnitLine>) -> BTreeSet<UnitName> {
        let loaded = lines.values().filter(|line| self.line_matters(line));
        let (failed, others): (Vec<&UnitLine>, Vec<&UnitLine>) =
            loaded.copied().partition(|line| line.is_failed());
        let name = |line: &UnitLine| line.name.clone();
        let failed: BTreeSet<UnitName> = failed.into_iter().map(name).collect();
        let mut others: BTreeSet<UnitName> = others.into_iter().map(name).collect();
        let unloaded = self
            .files
            .iter()
            .filter(|(name, file)| !lines.contains_key(name) && self.file_matters(name, file));
        others.extend(unloaded.map(|(name, _)| name.clone()));
        let mut by_rank = failed.into_iter().chain(others);
        let names = by_rank.by_ref().take(MAX_UNITS).collect();
        self.left_out = by_rank.collect();
        names
    }

    /// Examines one unit, loaded if it has a line, and returns whether the document has changed.
    async fn look_at(
        &mut self,
        name: &UnitName,
        line: Option<&UnitLine>,
    ) -> Result<bool, BackendError> {
        let seen = match line {
            Some(line) if self.line_matters(line) => match self.systemd.unit(name).await {
                Ok(unit) => self.observe_loaded(unit),
                Err(cause) if cause.kind == ErrorKind::Unavailable => return Err(cause),
                // A unit that cannot be read stays as it was, and does not hide the others.
                Err(_) => return Ok(false),
            },
            Some(_) => None,
            None => self.observe_unloaded(name),
        };
        let changed = match seen {
            Some(seen) => self.keep(name, seen),
            None => self.drop(name),
        };
        if changed {
            self.usages.count(name);
        }
        Ok(changed)
    }

    fn observe_loaded(&self, unit: Unit) -> Option<ObservedUnit> {
        self.unit_matters(&unit).then(|| ObservedUnit {
            entry: unit_facts::loaded_unit(&unit),
            line: Some(unit.line),
        })
    }

    fn observe_unloaded(&self, name: &UnitName) -> Option<ObservedUnit> {
        let file = self.files.get(name)?;
        self.file_matters(name, file).then(|| ObservedUnit {
            entry: unit_facts::unloaded_unit(name, file),
            line: None,
        })
    }

    /// Puts a unit into the document if there is room, and returns whether its entry has changed.
    fn keep(&mut self, name: &UnitName, seen: ObservedUnit) -> bool {
        if let Some(known) = self.known.get_mut(name) {
            let changed = known.entry != seen.entry;
            *known = seen;
            return changed;
        }
        if self.known.len() >= MAX_UNITS && !(seen.is_failed() && self.make_room()) {
            self.left_out.insert(name.clone());
            return false;
        }
        self.left_out.remove(name);
        self.known.insert(name.clone(), seen);
        true
    }

    /// Removes an irrelevant unit from the document, which makes room for another.
    fn drop(&mut self, name: &UnitName) -> bool {
        self.left_out.remove(name);
        let there = self.known.remove(name).is_some();
        if there && let Some(next) = self.left_out.first() {
            self.waiting.insert(next.clone(), Instant::now() + SETTLE);
        }
        there
    }

    /// Leaves out the last unit that has not failed, if there is one.
    fn make_room(&mut self) -> bool {
        let last = self.known.iter().rfind(|(_, known)| !known.is_failed());
        let Some(last) = last.map(|(name, _)| name.clone()) else {
            return false;
        };
        self.known.remove(&last);
        self.left_out.insert(last);
        true
    }

    /// Whether a loaded unit may be relevant, judging by the list.
    fn line_matters(&self, line: &UnitLine) -> bool {
        let there = line.load != "not-found" || line.active != "inactive";
        let enabled = |name: &UnitName| self.files.get(name).is_some_and(UnitFileState::is_enabled);
        let enabled = || {
            enabled(&line.name)
                || line
                    .name
                    .template()
                    .is_some_and(|template| enabled(&template))
        };
        there && (line.is_failed() || self.is_chosen(&line.name) || enabled())
    }

    /// Whether a unit is relevant. Some instances of a template may be enabled and others not. A unit that was
    /// unloaded after it was listed is loaded by the look, and then not found.
    fn unit_matters(&self, unit: &Unit) -> bool {
        let line = &unit.line;
        let by_itself = line.name.template().is_none()
            || unit.enabled.as_ref().is_some_and(UnitFileState::is_enabled);
        self.line_matters(line) && (line.is_failed() || self.is_chosen(&line.name) || by_itself)
    }

    /// Whether a unit with a file that is not loaded is relevant.
    fn file_matters(&self, name: &UnitName, file: &UnitFileState) -> bool {
        // An alias is another name of a unit; a transient unit vanishes without a signal.
        let own = !matches!(file.as_str(), "alias" | "transient");
        own && !name.is_template() && (file.is_enabled() || self.is_chosen(name))
    }

    fn is_chosen(&self, name: &UnitName) -> bool {
        self.live.read(|settings| {
            let chosen = &settings.observer.units;
            chosen.iter().any(|glob| glob.matches(name.as_str()))
        })
    }
}

impl ObservedUnit {
    fn is_failed(&self) -> bool {
        self.line.as_ref().is_some_and(UnitLine::is_failed)
    }
}

impl Usages {
    fn count(&mut self, name: &UnitName) {
        let now = Instant::now();
        self.units.retain(|_, usage| !usage.is_whole(now));
        let usage = self.units.entry(name.clone()).or_default();
        usage.spend(PER_UNIT, now);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::backends::SystemBus;
    use gatewren_base::config::{LiveSettingsSender, Settings};

    use super::*;

    fn name(name: &str) -> UnitName {
        name.parse().unwrap()
    }

    fn chosen(pattern: &str) -> LiveSettings {
        let mut settings = Settings::default();
        settings.observer.units.push(pattern.parse().unwrap());
        settings.into()
    }

    fn line(unit: &str, load: &str, active: &str) -> UnitLine {
        UnitLine {
            name: name(unit),
            description: String::new(),
            load: load.to_owned(),
            active: active.to_owned(),
            sub: String::new(),
        }
    }

    fn known_unit(unit: &str, active: &str) -> ObservedUnit {
        ObservedUnit {
            line: Some(line(unit, "loaded", active)),
            entry: json!({ "active": active }),
        }
    }

    /// Chosen are `lab-*`; `on.service` and the template `many@.service` are enabled, `off.timer` is not.
    fn units() -> ObservedUnits {
        let systemd = Systemd::new(SystemBus::at("unix:path=/nowhere"));
        let mut units = ObservedUnits::new(&systemd, chosen("lab-*"));
        let files = [
            ("on.service", "enabled"),
            ("many@.service", "enabled"),
            ("off.timer", "disabled"),
            ("lab-idle.service", "static"),
            ("lab-other-name.service", "alias"),
        ];
        let file = |(unit, state): (&str, &str)| (name(unit), state.to_owned().into());
        units.files = files.into_iter().map(file).collect();
        units
    }

    #[tokio::test]
    async fn those_that_are_chosen_are_those_of_the_settings_in_force() {
        let in_force = LiveSettingsSender::new(Settings::default());
        let systemd = Systemd::new(SystemBus::at("unix:path=/nowhere"));
        let mut units = ObservedUnits::new(&systemd, in_force.live());
        assert!(!units.is_chosen(&name("lab-x.service")));
        in_force.replace(Settings::clone(&chosen("lab-*").now()));
        units.wait_for_selection_change().await;
        assert!(units.is_chosen(&name("lab-x.service")));
    }

    #[test]
    fn those_that_failed_are_enabled_or_chosen_matter() {
        let units = units();
        #[rustfmt::skip]
        let table = [
            ("on.service", "loaded", "active", true), ("off.timer", "loaded", "active", false),
            ("off.timer", "loaded", "failed", true), ("lab-x.service", "loaded", "inactive", true),
            ("many@1.service", "loaded", "active", true), ("x@1.service", "loaded", "active", false),
            ("lab-gone.service", "not-found", "inactive", false),
            ("lab-gone.service", "not-found", "active", true),
            ("gone.service", "not-found", "failed", true),
        ];
        for (unit, load, active, expected) in table {
            let line = line(unit, load, active);
            assert_eq!(units.line_matters(&line), expected, "{line:?}");
        }
    }

    #[test]
    fn what_has_a_file_and_is_not_loaded_matters_too() {
        let mut units = units();
        let names = units.names_that_matter(&BTreeMap::new());
        let expected = [name("lab-idle.service"), name("on.service")];
        assert_eq!(names, expected.into());
        let idle = units.observe_unloaded(&name("lab-idle.service")).unwrap();
        assert_eq!(idle.entry["enabled"], "static");
        assert!(units.observe_unloaded(&name("off.timer")).is_none());
    }

    #[test]
    fn failed_units_find_room_first() {
        let mut units = units();
        let many: Vec<UnitLine> = (0..MAX_UNITS)
            .map(|n| line(&format!("lab-{n:04}.service"), "loaded", "active"))
            .chain([line("z.service", "loaded", "failed")])
            .collect();
        let lines = many.iter().map(|line| (&line.name, line)).collect();
        let names = units.names_that_matter(&lines);
        assert_eq!(names.len(), MAX_UNITS);
        assert!(names.contains(&name("z.service")));
        // The new unit displaced one, and two units with only a file had no room.
        assert_eq!(units.left_out(), 3);
    }

    #[test]
    fn one_that_comes_later_waits_for_room_unless_it_failed() {
        let mut units = units();
        for n in 0..MAX_UNITS {
            let unit = format!("lab-{n:04}.service");
            assert!(units.keep(&name(&unit), known_unit(&unit, "active")));
        }
        let late = name("lab-late.service");
        assert!(!units.keep(&late, known_unit("lab-late.service", "active")));
        assert_eq!((units.known.len(), units.left_out()), (MAX_UNITS, 1));
        assert!(units.keep(&name("z.service"), known_unit("z.service", "failed")));
        assert_eq!((units.known.len(), units.left_out()), (MAX_UNITS, 2));
        assert!(!units.known.contains_key(&name("lab-0511.service")));
        assert!(units.drop(&name("z.service")));
        assert!(
            units.waiting.contains_key(&name("lab-0511.service")),
            "there is room again"
        );
        assert!(units.drop(&name("lab-0000.service")) && !units.drop(&late));
    }

    #[test]
    fn only_what_is_another_counts_as_a_change() {
        let (mut units, web) = (units(), name("lab-web.service"));
        assert!(units.keep(&web, known_unit("lab-web.service", "active")));
        assert!(!units.keep(&web, known_unit("lab-web.service", "active")));
        assert!(units.keep(&web, known_unit("lab-web.service", "failed")));
        assert_eq!(
            units.document(),
            json!({ "lab-web.service": { "active": "failed" } })
        );
    }

    #[test]
    fn a_unit_that_changes_too_often_waits() {
        let (mut units, web) = (units(), name("lab-web.service"));
        let news = || ChangedUnits {
            units: [name("lab-web.service")].into(),
            ..ChangedUnits::default()
        };
        units.schedule_looks(news());
        assert!(units.next_look().unwrap() <= Instant::now() + SETTLE);
        units.waiting.clear();
        let before = Instant::now();
        for _ in 0..=PER_UNIT.burst {
            units.usages.count(&web);
        }
        units.schedule_looks(news());
        assert!(units.next_look().unwrap() >= before + PER_UNIT.every);
        // Another unit does not wait for it.
        let other = ChangedUnits {
            units: [name("lab-db.service")].into(),
            ..ChangedUnits::default()
        };
        units.schedule_looks(other);
        assert!(units.next_look().unwrap() <= Instant::now() + SETTLE);
    }

    #[test]
    fn too_many_names_are_one_look_at_everything() {
        let mut units = units();
        let names = (0..=MAX_WAITING).map(|n| name(&format!("u{n}.service")));
        units.schedule_looks(ChangedUnits {
            units: names.collect(),
            ..ChangedUnits::default()
        });
        assert!(units.waiting.is_empty() && units.files_at.is_some());
    }
}
