//! The arguments of `gatewren top`, and the loop that draws.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use super::super::console::output::{conclude, fail};
use super::super::console::runtime;
use super::super::console::target::InstanceArgs;
use super::page::{PageLine, as_json, page};
use super::view::TopState;
use gatewren_base::sys::{PressedKeys, now_ms, terminal_size};
use gatewren_store::vault::VaultPoller;

/// The size to use if the terminal does not report its own: rows and columns.
const USUAL_SIZE: (usize, usize) = (24, 80);

/// Switches to the alternate screen, which keeps the old content for later, and hides the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// Moves the cursor home; each line clears its rest, and the last one everything below.
const HOME: &str = "\x1b[H";
const WIPE_LINE: &str = "\x1b[K\r\n";
const WIPE_REST: &str = "\x1b[J";

const NOTES: &str = "\
It reads the audit, as gatewren audit list does, and updates the page until q or Ctrl-C. If standard output is
not a terminal, it prints one page and exits. It shows calls that began in the newest 20000 audit rows.";

/// The arguments of the command.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct TopArgs {
    /// Seconds between two updates
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,

    /// Print one page and exit
    #[arg(long)]
    once: bool,

    /// Print one page as a JSON object and exit
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    place: InstanceArgs,
}

/// Runs the command; it needs no running server.
pub fn run(args: &TopArgs) -> ExitCode {
    let opened = args.place.file("vault.db");
    let opened = opened.and_then(|file| VaultPoller::open(&file).map_err(words));
    let glance = match opened {
        Ok(glance) => glance,
        Err(words) => return fail(&words),
    };
    let mut view = TopState::default();
    if args.json || args.once || !io::stdout().is_terminal() {
        let looked = view.look(&glance, now_ms()).map_err(words);
        return conclude(looked.map(|()| {
            if args.json {
                as_json(&view, now_ms()).to_string()
            } else {
                painted(&page(&view, now_ms(), usize::MAX, usize::MAX), "\n")
            }
        }));
    }
    let every = Duration::from_secs(args.interval);
    let drawn = runtime::build()
        .map_err(words)
        .and_then(|runtime| runtime.block_on(draw(&glance, view, every)));
    match drawn {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => fail(&words),
    }
}

async fn draw(glance: &VaultPoller, mut view: TopState, every: Duration) -> Result<(), String> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(words)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(words)?;
    let mut resized = signal(SignalKind::window_change()).map_err(words)?;
    let mut looks = interval(every);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut keys = PressedKeys::receive().map_err(words)?;
    let _screen = Screen::enter().map_err(words)?;
    loop {
        tokio::select! {
            key = keys.next() => if matches!(key, b'q' | b'Q') {
                return Ok(());
            },
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
            _ = resized.recv() => {}
            _ = looks.tick() => view.look(glance, now_ms()).map_err(words)?,
        }
        let (rows, columns) = terminal_size().unwrap_or(USUAL_SIZE);
        let lines = page(&view, now_ms(), rows, columns);
        print(&format!(
            "{HOME}{}{WIPE_REST}",
            painted(&lines, WIPE_LINE) + "\x1b[K"
        ))
        .map_err(words)?;
    }
}

fn painted(lines: &[PageLine], between: &str) -> String {
    let lines: Vec<String> = lines.iter().map(PageLine::painted).collect();
    lines.join(between)
}

/// The alternate screen; dropping it restores the old content.
struct Screen;

impl Screen {
    fn enter() -> io::Result<Self> {
        print(ENTER).map(|()| Self)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // An error cannot be reported here.
        let _ = print(LEAVE);
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn words(cause: impl Display) -> String {
    cause.to_string()
}
