//! Documents of the measured sizes, similar to a host's: many small records.

use serde_json::{Map, Value, json};

/// A size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Its name in the tables.
    pub name: &'static str,
    /// The key below `/public/bench`.
    pub key: &'static str,
    /// Bytes of JSON text, up to one record more or less.
    bytes: usize,
}

/// The sizes.
pub const SIZES: [Size; 3] = [
    size("1 kB", "small", 1_000),
    size("100 kB", "medium", 100_000),
    size("10 MB", "large", 10_000_000),
];

/// The maximum length of a patch, in bytes, which is less than the state accepts at once.
const PATCH_BYTES: usize = 1_000_000;

/// Returns a size for the tables.
pub const fn size(name: &'static str, key: &'static str, bytes: usize) -> Size {
    Size { name, key, bytes }
}

impl Size {
    /// Returns the value of this size.
    pub fn value(self) -> Value {
        Value::Object(self.records())
    }

    /// Returns patches that together make the value at `/public/bench/<key>`; the first makes `/public/bench`, with a
    /// number at `tick`.
    pub fn patches(self) -> Vec<String> {
        let at = format!("/public/bench/{}", self.key);
        let bench = json!({ "tick": 0, self.key: {} });
        let mut patch = vec![json!({"op": "add", "path": "/public/bench", "value": bench})];
        let mut patches = Vec::new();
        let mut bytes = 0;
        for (key, record) in self.records() {
            let operation = json!({"op": "add", "path": format!("{at}/{key}"), "value": record});
            bytes += operation.to_string().len();
            // A patch has at most 10,000 operations; these are longer than 100 bytes.
            if bytes > PATCH_BYTES {
                bytes = 0;
                patches.push(Value::from(std::mem::take(&mut patch)).to_string());
            }
            patch.push(operation);
        }
        patches.push(Value::from(patch).to_string());
        patches
    }

    fn records(self) -> Map<String, Value> {
        let mut bytes = 2;
        let records = (0..).map(|n| (format!("record-{n:06}"), record(n)));
        let fits = |(key, record): &(String, Value)| {
            bytes += key.len() + record.to_string().len() + 4;
            bytes <= self.bytes
        };
        records.take_while(fits).collect()
    }
}

/// Returns a record similar to a container.
fn record(n: usize) -> Value {
    json!({
        "status": if n.is_multiple_of(3) { "running" } else { "stopped" },
        "pid": 1000 + n,
        "autostart": n.is_multiple_of(2),
        "addresses": [format!("10.0.3.{}", n % 250), format!("fd00::{n:x}")],
        "memory": { "used": n * 4096, "limit": null, "share": 0.25 },
        "os": "Debian GNU/Linux 12 (\"bookworm\")",
    })
}
