//! What callgrind wrote: instructions by function, who called whom how often, and how often memory was asked for.

use std::collections::{BTreeMap, HashMap};

use crate::common::Error;

/// The doors of the allocator: Rust's, mimalloc's as Rust's are built into their callers, and C's. What one of them
/// asks of another is not asked again.
const ALLOCATORS: [&str; 18] = [
    "__rustc::__rust_alloc",
    "__rustc::__rust_alloc_zeroed",
    "__rustc::__rust_realloc",
    "mi_malloc",
    "mi_zalloc",
    "mi_realloc",
    "mi_malloc_aligned",
    "mi_zalloc_aligned",
    "mi_realloc_aligned",
    "mi_theap_malloc_aligned",
    "mi_theap_malloc_zero_aligned_at",
    "malloc",
    "calloc",
    "realloc",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "__libc_memalign",
];

/// What was counted.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// Instructions in all.
    pub instructions: u64,
    /// How often memory was asked for.
    pub allocations: u64,
    /// By name, without the compiler's hash.
    pub functions: BTreeMap<String, Function>,
}

/// What was counted of a function.
#[derive(Debug, Clone, Copy, Default)]
pub struct Function {
    /// Instructions of its own.
    pub own: u64,
    /// Instructions with all that it called; too many of one that calls itself.
    pub whole: u64,
    /// How often it was called.
    pub called: u64,
    /// How often it asked for memory itself.
    pub allocations: u64,
}

/// Reads one file in callgrind's format, of which one figure is counted: instructions. Names are written out once
/// and are numbers from then on.
#[derive(Default)]
struct Reader<'a> {
    names: HashMap<&'a str, String>,
    profile: Profile,
    /// The function whose lines these are.
    of: String,
    /// What it calls on the next line, and how often.
    call: Option<(String, u64)>,
}

impl Profile {
    /// Reads what callgrind wrote.
    pub fn read(text: &str) -> Result<Self, Error> {
        let mut reader = Reader::default();
        let known = text.lines().any(|line| line == "events: Ir");
        if !known {
            return Err("callgrind counted something else than instructions".into());
        }
        for line in text.lines() {
            reader.line(line)?;
        }
        Ok(reader.profile)
    }

    /// Adds another thread's.
    pub fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
        self.allocations += other.allocations;
        for (name, more) in &other.functions {
            let function = self.functions.entry(name.clone()).or_default();
            function.own += more.own;
            function.whole += more.whole;
            function.called += more.called;
            function.allocations += more.allocations;
        }
    }

    /// The functions whose names hold this, taken together.
    pub fn of(&self, part: &str) -> Function {
        let mut all = Function::default();
        let found = self
            .functions
            .iter()
            .filter(|(name, _)| name.contains(part));
        for (_, function) in found {
            all.own += function.own;
            all.whole += function.whole;
            all.called += function.called;
            all.allocations += function.allocations;
        }
        all
    }
}

impl<'a> Reader<'a> {
    fn line(&mut self, line: &'a str) -> Result<(), Error> {
        if let Some(named) = line.strip_prefix("fn=") {
            self.of = self.name(named);
        } else if let Some(named) = line.strip_prefix("cfn=") {
            self.call = Some((self.name(named), 0));
        } else if let Some(counted) = line.strip_prefix("calls=") {
            let times = counted.split(' ').next().unwrap_or_default().parse()?;
            if let Some((_, count)) = &mut self.call {
                *count = times;
            }
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            let cost = line.split(' ').nth(1).unwrap_or("0").parse()?;
            self.cost(cost);
        }
        Ok(())
    }

    fn cost(&mut self, cost: u64) {
        let functions = &mut self.profile.functions;
        let of = functions.entry(self.of.clone()).or_default();
        of.whole += cost;
        let Some((callee, times)) = self.call.take() else {
            of.own += cost;
            self.profile.instructions += cost;
            return;
        };
        let is_door = |name: &str| ALLOCATORS.contains(&name);
        if is_door(&callee) && !is_door(&self.of) {
            of.allocations += times;
            self.profile.allocations += times;
        }
        functions.entry(callee).or_default().called += times;
    }

    fn name(&mut self, named: &'a str) -> String {
        let (number, name) = named.split_once(' ').unwrap_or((named, ""));
        if !name.is_empty() {
            self.names.insert(number, plain(name));
        }
        self.names.get(number).cloned().unwrap_or_default()
    }
}

/// A name without the hash that the compiler adds, which is another after every change, and without callgrind's
/// mark of a recursion.
fn plain(name: &str) -> String {
    let name = name
        .trim_end_matches(|c: char| c.is_ascii_digit())
        .strip_suffix('\'')
        .unwrap_or(name);
    let hashed = name.rsplit_once("::h").filter(|(_, hash)| {
        hash.len() == 16 && hash.bytes().all(|digit| digit.is_ascii_hexdigit())
    });
    hashed.map_or(name, |(name, _)| name).to_owned()
}
