//! gatewren for another processor, under qemu: counts the instructions that it takes from one moment to another.

use std::fs;
use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::common::Error;
use crate::common::machine::Pinning;
use crate::common::servers::{Directory, Gatewren, Home, Running};

/// A processor that this machine is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processor {
    /// `AArch64`, as qemu has it.
    Arm64,
    /// `ARMv7` without NEON, which Debian's armhf does not promise.
    Armhf,
}

/// gatewren, emulated and counted.
pub struct Emulated {
    /// It.
    pub ours: Gatewren,
    counts: PathBuf,
    _helper: Running,
    _directory: Directory,
}

impl Processor {
    /// Debian's word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arm64 => "arm64",
            Self::Armhf => "armhf",
        }
    }

    /// What runs its programs, and as which of its models.
    fn emulator(self) -> (&'static Path, &'static [&'static str]) {
        match self {
            Self::Arm64 => (Path::new("qemu-aarch64"), &[]),
            Self::Armhf => (Path::new("qemu-arm"), &["-cpu", "cortex-a9,neon=off"]),
        }
    }
}

impl Emulated {
    /// Starts a binary. It has one core, and so one thread for all connections; its state was made, and its helper is
    /// run, by the same gatewren for this machine.
    pub fn start(
        args: &Args,
        pinning: Pinning,
        processor: Processor,
        binary: &Path,
    ) -> Result<Self, Error> {
        let plugin = args.plugin.as_ref().ok_or("--plugin is needed")?;
        let home = Home::new(&args.common)?;
        let helper = home.start_helper(&args.common)?;
        let directory = Directory::new()?;
        let counts = directory.join("counts");
        let (emulator, model) = processor.emulator();
        let mut command = pinning.server(emulator);
        let counting = format!("{},counts={}", plugin.display(), counts.display());
        command.args(model).args(["-plugin", &counting]).arg(binary);
        let process = home.start_with(command)?;
        Ok(Self {
            ours: Gatewren::of(home, process)?,
            counts,
            _helper: helper,
            _directory: directory,
        })
    }

    /// Instructions of the thread of every connection since the start: the first one.
    pub fn front(&self) -> Result<u64, Error> {
        let counts = fs::read(&self.counts)?;
        let first = counts.first_chunk().ok_or("the plugin has no counts")?;
        Ok(u64::from_ne_bytes(*first))
    }
}
