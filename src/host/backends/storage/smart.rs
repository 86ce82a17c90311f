//! Parses a disk's SMART data from `smartctl --json`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::super::source::label;

/// The attributes of ATA disks that indicate failure; see the fields of [`SmartDisk`].
const REALLOCATED: u64 = 5;
const PENDING: u64 = 197;
const UNCORRECTABLE: u64 = 198;

/// From this percentage of the vendor's rated life on, an SSD is reported as worn.
const WORN_PERCENT: u64 = 90;

/// A disk's SMART data.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct SmartDisk {
    /// Its name, such as `sda`.
    pub disk: String,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The disk's own health assessment; absent if it reports none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// Its temperature in degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<i64>,
    /// Its hours of operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_on_h: Option<u64>,
    /// Sectors that it has replaced by spare ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reallocated_sectors: Option<u64>,
    /// Unreadable sectors that it will replace when they are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_sectors: Option<u64>,
    /// Errors that it could not correct.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncorrectable_errors: Option<u64>,
    /// The used part of the vendor's rated life in percent; may exceed 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_percent: Option<u64>,
    /// Why there is no more data, such as that it sleeps: it is not woken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl SmartDisk {
    /// Returns its problems.
    pub fn problems(&self) -> Vec<String> {
        let disk = &self.disk;
        let mut all = Vec::new();
        if self.passed == Some(false) {
            all.push(format!(
                "{disk} reports that it is failing: save its data and replace it"
            ));
        }
        for (count, what) in [
            (self.reallocated_sectors, "sectors were replaced"),
            (self.pending_sectors, "sectors cannot be read"),
            (self.uncorrectable_errors, "errors could not be corrected"),
        ] {
            if let Some(count) = count.filter(|count| *count > 0) {
                all.push(format!("{disk}: {count} {what}"));
            }
        }
        if let Some(used) = self.used_percent.filter(|used| *used >= WORN_PERCENT) {
            all.push(format!("{disk}: {used} % of its rated life is used up"));
        }
        all
    }
}

/// Parses smartctl's output for a disk.
pub fn smart(disk: &str, output: &str) -> SmartDisk {
    let report: Value = serde_json::from_str(output).unwrap_or_default();
    let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_u64);
    let text = |pointer: &str| {
        report
            .pointer(pointer)
            .and_then(Value::as_str)
            .and_then(label)
    };
    let attribute = |id: u64| {
        let table = report.pointer("/ata_smart_attributes/table")?.as_array()?;
        let row = table
            .iter()
            .find(|row| row.get("id").and_then(Value::as_u64) == Some(id))?;
        row.pointer("/raw/value")?.as_u64()
    };
    let nvme = |name: &str| number(&format!("/nvme_smart_health_information_log/{name}"));
    let passed = report
        .pointer("/smart_status/passed")
        .and_then(Value::as_bool);
    let silent = "it reports no health data".to_owned();
    let note = || text("/smartctl/messages/0/string").unwrap_or(silent);
    SmartDisk {
        disk: disk.to_owned(),
        model: text("/model_name").or_else(|| text("/scsi_model_name")),
        passed,
        temperature_c: report
            .pointer("/temperature/current")
            .and_then(Value::as_i64),
        power_on_h: number("/power_on_time/hours"),
        reallocated_sectors: attribute(REALLOCATED),
        pending_sectors: attribute(PENDING),
        uncorrectable_errors: attribute(UNCORRECTABLE).or_else(|| nvme("media_errors")),
        used_percent: nvme("percentage_used"),
        note: passed.is_none().then(note),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the format of `smartctl --json=c` 7.3 (smartmontools, ataprint.cpp), limited to the
    /// fields in use: a disk with damaged sectors.
    const ATA: &str = r#"{"json_format_version":[1,0],"smartctl":{"version":[7,3],"exit_status":4},
        "device":{"name":"/dev/sda","type":"sat","protocol":"ATA"},"model_name":"WDC WD40EFRX-68N32N0",
        "serial_number":"WD-WCC7K0000000","smart_status":{"passed":true},
        "ata_smart_attributes":{"revision":16,"table":[
        {"id":5,"name":"Reallocated_Sector_Ct","value":200,"worst":200,"thresh":140,"raw":{"value":3,"string":"3"}},
        {"id":197,"name":"Current_Pending_Sector","value":200,"worst":200,"thresh":0,"raw":{"value":8,"string":"8"}},
        {"id":198,"name":"Offline_Uncorrectable","value":100,"worst":253,"thresh":0,"raw":{"value":0,"string":"0"}}]},
        "power_on_time":{"hours":31337},"temperature":{"current":34}}"#;

    /// In the same format (nvmeprint.cpp): an NVM Express disk.
    const NVME: &str = r#"{"smartctl":{"version":[7,3],"exit_status":8},"model_name":"Samsung SSD 980 1TB",
        "smart_status":{"passed":false,"nvme":{"value":4}},"nvme_smart_health_information_log":{"critical_warning":4,
        "temperature":41,"available_spare":3,"percentage_used":102,"power_on_hours":20000,"media_errors":7},
        "temperature":{"current":41},"power_on_time":{"hours":20000}}"#;

    /// In the same format: a sleeping disk.
    const ASLEEP: &str = r#"{"smartctl":{"version":[7,3],"messages":[{"string":"Device is in STANDBY mode, exit(2)",
        "severity":"information"}],"exit_status":2},"device":{"name":"/dev/sdb"}}"#;

    /// Recorded: smartctl 7.3 on a disk of an unknown type.
    const UNKNOWN: &str = r#"{"json_format_version":[1,0],"smartctl":{"version":[7,3],"svn_revision":"5338",
        "platform_info":"x86_64-linux","build_info":"(local build)","argv":["smartctl","--json=c","--info","--health",
        "--attributes","--nocheck=standby","/dev/vda"],"messages":[{"string":"/dev/vda: Unable to detect device type",
        "severity":"error"}],"exit_status":1},"local_time":{"time_t":1795380712,"asctime":"Sun Nov 22 20:51:52 2026 UTC"}}"#;

    #[test]
    fn what_disks_say_is_read() {
        let unknown = smart("vda", UNKNOWN);
        let note = unknown.note.as_deref();
        assert_eq!(note, Some("/dev/vda: Unable to detect device type"));
        assert!(unknown.problems().is_empty());
        let ata = smart("sda", ATA);
        assert_eq!(
            (ata.passed, ata.power_on_h, ata.temperature_c),
            (Some(true), Some(31337), Some(34))
        );
        assert_eq!(
            ata.problems(),
            [
                "sda: 3 sectors were replaced",
                "sda: 8 sectors cannot be read"
            ]
        );
        let nvme = smart("nvme0n1", NVME);
        assert_eq!(
            (nvme.used_percent, nvme.uncorrectable_errors),
            (Some(102), Some(7))
        );
        assert_eq!(nvme.problems().len(), 3, "{nvme:?}");
        let asleep = smart("sdb", ASLEEP);
        assert_eq!(
            asleep.note.as_deref(),
            Some("Device is in STANDBY mode, exit(2)")
        );
        assert_eq!((asleep.passed, asleep.problems().len()), (None, 0));
    }

    #[test]
    fn what_cannot_be_read_is_no_news() {
        for odd in [
            "",
            "[]",
            "{\"smart_status\":1}",
            "{\"ata_smart_attributes\":{\"table\":[1]}}",
        ] {
            let disk = smart("sda", odd);
            assert!(disk.note.is_some() && disk.problems().is_empty(), "{odd}");
        }
    }
}
