//! gatewren for another processor, under qemu: counts its instructions in a period.

use std::fs;
use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::common::Error;
use crate::common::machine::Pinning;
use crate::common::servers::{Directory, Gatewren, Home, Running};

/// A processor other than this machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processor {
    /// `AArch64`, as qemu emulates it.
    Arm64,
    /// `ARMv7` without NEON, which Debian's armhf does not require.
    Armhf,
}

/// An emulated and counted gatewren.
pub struct Emulated {
    /// The server.
    pub ours: Gatewren,
    counts: PathBuf,
    _helper: Running,
    _directory: Directory,
}

impl Processor {
    /// Returns Debian's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arm64 => "arm64",
            Self::Armhf => "armhf",
        }
    }

    /// Returns the emulator and the arguments that select the model.
    fn emulator(self) -> (&'static Path, &'static [&'static str]) {
        match self {
            Self::Arm64 => (Path::new("qemu-aarch64"), &[]),
            Self::Armhf => (Path::new("qemu-arm"), &["-cpu", "cortex-a9,neon=off"]),
        }
    }
}

impl Emulated {
    /// Starts a binary. It has one core, and therefore one thread for all connections. The gatewren for this machine
    /// makes its state and runs its helper.
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

    /// Returns the instructions since the start of the thread that serves all connections: the first one.
    pub fn front(&self) -> Result<u64, Error> {
        let counts = fs::read(&self.counts)?;
        let first = counts.first_chunk().ok_or("the plugin has no counts")?;
        Ok(u64::from_ne_bytes(*first))
    }
}
