//! Callgrind's output: instructions by function, numbers of calls, and allocations.

use std::collections::{BTreeMap, HashMap};

use crate::common::Error;

/// The entry points of the allocator: Rust's, mimalloc's where Rust's are inlined into their callers, and C's. A call
/// from one of them to another is not counted again.
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

/// The counts of a period.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// Instructions in total.
    pub instructions: u64,
    /// The number of allocations.
    pub allocations: u64,
    /// By name, without the compiler's hash.
    pub functions: BTreeMap<String, Function>,
}

/// The counts of a function.
#[derive(Debug, Clone, Copy, Default)]
pub struct Function {
    /// Its own instructions.
    pub own: u64,
    /// Its instructions with those of all callees; too many for a recursive function.
    pub whole: u64,
    /// The number of calls.
    pub called: u64,
    /// The number of its own allocations.
    pub allocations: u64,
}

/// A parser of a file in callgrind's format with one counted event: instructions. A name is written out once, and is
/// a number from then on.
#[derive(Default)]
struct Reader<'a> {
    names: HashMap<&'a str, String>,
    profile: Profile,
    /// The function that the current lines belong to.
    of: String,
    /// The callee of the next line, and the number of calls.
    call: Option<(String, u64)>,
}

impl Profile {
    /// Parses callgrind's output.
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

    /// Adds the counts of another thread.
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

    /// Returns the sum of the functions with `part` in their names.
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

/// Returns a name without the compiler's hash, which changes with every build, and without callgrind's mark of a
/// recursion.
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
