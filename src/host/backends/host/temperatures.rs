//! The temperatures of the kernel's sensors.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::super::source::HostTree;

/// The driver that queries the disk itself, which can keep a sleeping disk awake.
const DISK_DRIVER: &str = "drivetemp";

/// One temperature.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Temperature {
    /// The sensor, such as `coretemp Package id 0`.
    pub sensor: String,
    /// The temperature in degrees Celsius.
    pub celsius: f64,
    /// The high limit in degrees Celsius, if the sensor has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_celsius: Option<f64>,
    /// The limit in degrees Celsius above which the part is damaged or switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical_celsius: Option<f64>,
}

/// Which sensors are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SensorSelection {
    /// All.
    All,
    /// Without sensors that would wake a disk.
    Quiet,
}

/// Returns all temperatures, sorted by sensor.
pub fn temperatures(tree: &HostTree, which: SensorSelection) -> Vec<Temperature> {
    let mut all: Vec<(String, Temperature)> = Vec::new();
    for chip in tree.names("sys/class/hwmon") {
        let place = format!("sys/class/hwmon/{chip}");
        let name = tree.label(&format!("{place}/name"));
        let name = name.unwrap_or_else(|| "unknown".to_owned());
        if which == SensorSelection::All || name != DISK_DRIVER {
            let device = tree.link_name(&format!("{place}/device"));
            let device = device.unwrap_or(chip);
            let found = chip_temperatures(tree, &place, &name);
            all.extend(found.into_iter().map(|one| (device.clone(), one)));
        }
    }
    let mut all = number_duplicates(all);
    all.sort_by(|a, b| a.sensor.cmp(&b.sensor));
    all
}

fn chip_temperatures(tree: &HostTree, place: &str, name: &str) -> Vec<Temperature> {
    let files = tree.names(place).into_iter();
    let inputs = files.filter_map(|file| file.strip_suffix("_input").map(str::to_owned));
    inputs
        .filter(|input| input.starts_with("temp"))
        .filter_map(|input| {
            let degrees = |what: &str| {
                let millidegrees = tree.number::<i32>(&format!("{place}/{input}_{what}"))?;
                Some(f64::from(millidegrees) / 1000.0)
            };
            let label = tree.label(&format!("{place}/{input}_label"));
            // A limit that was never set is 0, negative, or absurdly high.
            let limit = |what: &str| degrees(what).filter(|limit| (1.0..200.0).contains(limit));
            Some(Temperature {
                sensor: format!("{name} {}", label.unwrap_or(input.clone())),
                celsius: degrees("input")?,
                high_celsius: limit("max"),
                critical_celsius: limit("crit"),
            })
        })
        .collect()
}

/// Two disks of one model have sensors of the same name; then the name includes the device.
fn number_duplicates(all: Vec<(String, Temperature)>) -> Vec<Temperature> {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for (_, one) in &all {
        *count.entry(one.sensor.clone()).or_default() += 1;
    }
    let name = |(device, mut one): (String, Temperature)| {
        if count.get(&one.sensor).is_some_and(|count| *count > 1) {
            one.sensor = format!("{} ({device})", one.sensor);
        }
        one
    };
    all.into_iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use gatewren_base::sys::Scratch;

    use super::super::recording::record;
    use super::*;

    #[test]
    fn temperatures_have_the_names_of_their_sensors_and_their_limits() {
        let scratch = Scratch::new();
        // As the drivers of a desktop with two NVMe disks and one rotating disk lay them out.
        let tree = record(
            &scratch,
            &[
                ("sys/class/hwmon/hwmon0/name", "coretemp\n"),
                ("sys/class/hwmon/hwmon0/temp1_input", "41500\n"),
                ("sys/class/hwmon/hwmon0/temp1_label", "Package id 0\n"),
                ("sys/class/hwmon/hwmon0/temp1_max", "80000\n"),
                ("sys/class/hwmon/hwmon0/temp1_crit", "100000\n"),
                ("sys/class/hwmon/hwmon0/temp2_input", "-3000\n"),
                ("sys/class/hwmon/hwmon0/temp3_input", "broken\n"),
                ("sys/class/hwmon/hwmon0/fan1_input", "900\n"),
                ("sys/class/hwmon/hwmon1/name", "nvme\n"),
                ("sys/class/hwmon/hwmon1/device", "-> ../../nvme0"),
                ("sys/class/hwmon/hwmon1/temp1_input", "38850\n"),
                ("sys/class/hwmon/hwmon1/temp1_label", "Composite\n"),
                ("sys/class/hwmon/hwmon1/temp1_max", "84850\n"),
                ("sys/class/hwmon/hwmon1/temp1_crit", "-273150\n"),
                ("sys/class/hwmon/hwmon2/name", "nvme\n"),
                ("sys/class/hwmon/hwmon2/device", "-> ../../nvme1"),
                ("sys/class/hwmon/hwmon2/temp1_input", "39850\n"),
                ("sys/class/hwmon/hwmon2/temp1_label", "Composite\n"),
                ("sys/class/hwmon/hwmon3/name", "drivetemp\n"),
                ("sys/class/hwmon/hwmon3/temp1_input", "30000\n"),
            ],
        );
        let seen = |which| {
            let all = temperatures(&tree, which);
            let limits = all.into_iter().map(|one| {
                let Temperature {
                    sensor,
                    celsius,
                    high_celsius,
                    critical_celsius,
                } = one;
                (sensor, celsius, high_celsius, critical_celsius)
            });
            limits.collect::<Vec<_>>()
        };
        let quiet = [
            (
                "coretemp Package id 0".to_owned(),
                41.5,
                Some(80.0),
                Some(100.0),
            ),
            ("coretemp temp2".to_owned(), -3.0, None, None),
            (
                "nvme Composite (nvme0)".to_owned(),
                38.85,
                Some(84.85),
                None,
            ),
            ("nvme Composite (nvme1)".to_owned(), 39.85, None, None),
        ];
        assert_eq!(seen(SensorSelection::Quiet), quiet);
        assert_eq!(seen(SensorSelection::All)[2].0, "drivetemp temp1");
        let none = HostTree::below(&scratch.join("none"));
        assert!(temperatures(&none, SensorSelection::All).is_empty());
    }
}
