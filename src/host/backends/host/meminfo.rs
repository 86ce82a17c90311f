//! Memory and swap from `/proc/meminfo`.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::source::field;

/// The total and the available amount of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct MemorySpace {
    /// The total amount in bytes.
    pub total_bytes: u64,
    /// The amount in bytes that is available without reclaiming memory in use.
    pub available_bytes: u64,
}

/// Returns the memory.
pub fn memory(meminfo: &str) -> MemorySpace {
    // Kernels before 3.14 have no MemAvailable; MemFree is lower, but never too high.
    let available = bytes(meminfo, "MemAvailable").or_else(|| bytes(meminfo, "MemFree"));
    MemorySpace {
        total_bytes: bytes(meminfo, "MemTotal").unwrap_or(0),
        available_bytes: available.unwrap_or(0),
    }
}

/// Returns the swap space; all zero if there is none.
pub fn swap(meminfo: &str) -> MemorySpace {
    MemorySpace {
        total_bytes: bytes(meminfo, "SwapTotal").unwrap_or(0),
        available_bytes: bytes(meminfo, "SwapFree").unwrap_or(0),
    }
}

fn bytes(meminfo: &str, key: &str) -> Option<u64> {
    let kilobytes = field(meminfo, key, ':')?.strip_suffix("kB")?.trim();
    kilobytes.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kilobytes_become_bytes() {
        let text = "MemTotal:       24684084 kB\nMemFree:        22431932 kB\n\
                    MemAvailable:   24218844 kB\nSwapTotal:        8 kB\nSwapFree:         4 kB\n";
        let space = |total_bytes, available_bytes| MemorySpace {
            total_bytes,
            available_bytes,
        };
        assert_eq!(memory(text), space(25_276_502_016, 24_800_096_256));
        assert_eq!(swap(text), space(8192, 4096));
    }

    #[test]
    fn odd_input_is_nothing() {
        for text in [
            "",
            "MemTotal: x kB",
            "MemTotal: 99999999999999999999 kB",
            "MemTotal\n:::",
        ] {
            assert_eq!(memory(text), MemorySpace::default(), "{text}");
            assert_eq!(swap(text), MemorySpace::default(), "{text}");
        }
        assert_eq!(
            memory("MemTotal: 18446744073709551615 kB"),
            MemorySpace::default()
        );
    }
}
