//! Parses CPU time, load averages and pressure.

use super::super::source;

/// Processor time since the boot, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTime {
    busy: u64,
    all: u64,
}

impl CpuTime {
    /// Parses `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal. Guest time is
    /// part of user.
    pub fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line
            .split_whitespace()
            .take(8)
            .map_while(|word| word.parse().ok())
            .collect();
        let idle = ticks
            .iter()
            .skip(3)
            .take(2)
            .copied()
            .fold(0, u64::saturating_add);
        let all = ticks.iter().copied().fold(0, u64::saturating_add);
        (ticks.len() >= 4).then_some(Self {
            busy: all - idle,
            all,
        })
    }

    /// Returns the CPU usage between two readings, in percent.
    pub fn percent_since(self, earlier: Self) -> f64 {
        let busy = self.busy.saturating_sub(earlier.busy);
        let all = self.all.saturating_sub(earlier.all);
        percent(busy, all)
    }
}

/// Returns the number of processors in use, from `/proc/stat`.
pub fn processors(stat: &str) -> usize {
    let numbers = stat.lines().filter_map(|line| line.strip_prefix("cpu"));
    numbers
        .filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        .count()
}

/// Returns the boot time in seconds since 1970, from `/proc/stat`.
pub fn boot_time_s(stat: &str) -> Option<u64> {
    source::field(stat, "btime", ' ')?.parse().ok()
}

/// Returns the load averages over 1, 5 and 15 minutes, from `/proc/loadavg`.
pub fn load(loadavg: &str) -> Option<[f64; 3]> {
    let mut words = loadavg
        .split_whitespace()
        .map_while(|word| word.parse::<f64>().ok());
    Some([words.next()?, words.next()?, words.next()?])
        .filter(|load| load.iter().all(|l| l.is_finite()))
}

/// Returns the share of the last ten seconds in which some work waited, in percent, from
/// `/proc/pressure/*`.
pub fn some_avg10(pressure: &str) -> Option<f64> {
    let line = pressure
        .lines()
        .find_map(|line| line.strip_prefix("some "))?;
    let average = line
        .split_whitespace()
        .find_map(|word| word.strip_prefix("avg10="))?;
    average.parse().ok().filter(|share: &f64| share.is_finite())
}

/// Returns the microseconds since the boot in which some work waited, from `/proc/pressure/*`.
pub fn some_total_us(pressure: &str) -> Option<u64> {
    let mut lines = pressure.lines();
    let line = lines.find_map(|line| line.strip_prefix("some "))?;
    let mut words = line.split_whitespace();
    let total = words.find_map(|word| word.strip_prefix("total="))?;
    total.parse().ok()
}

/// Returns a share in percent with one decimal; 0 if `whole` is 0.
#[expect(
    clippy::cast_precision_loss,
    reason = "a percentage needs three digits"
)]
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    (part as f64 / whole as f64 * 1000.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 0 50 800 50 0 0 0 7 0\ncpu0 1 2 3\nintr 5\nbtime 1763760000\n";

    #[test]
    fn the_share_of_busy_time() {
        let earlier = CpuTime::parse(STAT).unwrap();
        let later = CpuTime::parse("cpu  150 0 75 875 50 0 0 0 9 0\n").unwrap();
        assert!((later.percent_since(earlier) - 50.0).abs() < 1e-9);
        assert!(earlier.percent_since(earlier).abs() < 1e-9);
        assert!(earlier.percent_since(later).abs() < 1e-9);
        assert_eq!(boot_time_s(STAT), Some(1_763_760_000));
    }

    #[test]
    fn load_and_pressure() {
        assert_eq!(load("0.71 0.44 0.23 1/97 5381\n"), Some([0.71, 0.44, 0.23]));
        let cpu = "some avg10=1.26 avg60=6.46 avg300=3.97 total=43941774\n\
                   full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(some_avg10(cpu), Some(1.26));
        assert_eq!(some_total_us(cpu), Some(43_941_774));
    }

    #[test]
    fn odd_input_is_nothing() {
        for text in [
            "",
            "cpu ",
            "cpu  1 2 3",
            "cpu  -1 x",
            "cpux 1 2 3 4",
            "\u{fffd}\n\n",
        ] {
            assert_eq!(CpuTime::parse(text), None, "{text}");
            assert_eq!(boot_time_s(text), None, "{text}");
            assert_eq!(some_avg10(text), None, "{text}");
            assert_eq!(some_total_us(text), None, "{text}");
        }
        let max = u64::MAX;
        assert!(CpuTime::parse(&format!("cpu  {max} {max} {max} {max} {max}")).is_some());
        for text in ["", "0.1 0.2", "nan nan nan", "inf 0 0", "a b c"] {
            assert_eq!(load(text), None, "{text}");
        }
        assert_eq!(some_avg10("some avg10=NaN"), None);
    }
}
