//! W13: a call in a session behind nginx and `HAProxy`, without the hop of the balancer itself.

use std::process::Command;

use crate::common::Error;
use crate::common::balancer::{Balancer, BalancerKind, TwoFronts};
use crate::common::load::{Asked, Caller, Kind, sample};
use crate::common::servers::Bare;
use crate::common::spread::Spread;
use crate::common::wire::{Question, Wire};
use crate::context::Context;
use crate::figure::{Figure, Findings};

const WHOAMI: Question<'_> = Question {
    wire: Wire::Stateful,
    method: "tools/call",
    name: Some("whoami"),
    params: r#""name":"whoami","arguments":{}"#,
};

/// The medians of one round, in microseconds.
#[derive(Debug, Default, Clone, Copy)]
struct Medians {
    hyper: f64,
    hyper_balanced: f64,
    ours: f64,
    ours_balanced: f64,
}

impl Medians {
    /// The call without what the balancer adds to hyper, by the call without a balancer.
    fn ratio(self) -> f64 {
        (self.ours_balanced - (self.hyper_balanced - self.hyper)) / self.ours
    }

    /// What gatewren takes longer than hyper through the balancer, by the same without one.
    fn added(self) -> f64 {
        (self.ours_balanced - self.hyper_balanced) / (self.ours - self.hyper)
    }
}

/// Measures both balancers.
pub async fn measure(cx: &Context) -> Result<Findings, Error> {
    let kinds = [BalancerKind::Nginx, BalancerKind::Haproxy];
    let mut measured = kinds.map(|kind| (kind, Vec::new()));
    for _ in cx.rounds() {
        let fronts = TwoFronts::start(&cx.args.common, cx.pinning)?;
        for (kind, rounds) in &mut measured {
            if has_program(*kind) {
                rounds.push(round(cx, *kind, &fronts).await?);
            }
        }
    }
    Ok(Findings {
        figures: measured.map(|(kind, rounds)| figure(kind, &rounds)).into(),
        ..Findings::default()
    })
}

async fn round(cx: &Context, kind: BalancerKind, fronts: &TwoFronts) -> Result<Medians, Error> {
    let ours = &fronts.a;
    let of_ours = ours.asked(&WHOAMI);
    let (_, size) = Caller::open(&of_ours).await?.once().await?;
    let bare = Bare::start(size, Some(ours), cx.pinning)?;
    let before_ours = Balancer::start(kind, [ours.address.socket(), fronts.b], ours, cx.pinning)?;
    let before_bare = Balancer::start(kind, [bare.address.socket(); 2], ours, cx.pinning)?;
    // As long as a real one, so that each proxy has as much to forward.
    let session = format!("a-{}", "x".repeat(200));
    let of_bare = |address| Asked {
        address,
        pid: bare.pid(),
        question: &WHOAMI,
        kind: Kind::BareInSession {
            size,
            token: &ours.token,
            session: &session,
        },
    };
    let ours_at = |address| Asked {
        address,
        ..ours.asked(&WHOAMI)
    };
    let median = async |asked: Asked<'_>| -> Result<f64, Error> {
        Ok(sample(&asked, 1, cx.args.common.seconds).await?.p50_us)
    };
    let mut medians = Medians::default();
    // There and back, so that a machine that becomes slower affects all four alike.
    for there in [true, false] {
        let order = if there { [0, 1, 2, 3] } else { [3, 2, 1, 0] };
        for step in order {
            let (sum, asked) = match step {
                0 => (&mut medians.hyper, of_bare(&bare.address)),
                1 => (&mut medians.hyper_balanced, of_bare(&before_bare.address)),
                2 => (&mut medians.ours_balanced, ours_at(&before_ours.address)),
                _ => (&mut medians.ours, ours_at(&ours.address)),
            };
            *sum += median(asked).await? / 2.0;
        }
    }
    Ok(medians)
}

fn figure(kind: BalancerKind, rounds: &[Medians]) -> Figure {
    let program = kind.program();
    let key = format!("balanced-{program}");
    if rounds.is_empty() {
        return Figure::without(key, format!("there is no program {program}"));
    }
    let spread = |figure: fn(&Medians) -> f64| Spread::of(rounds.iter().map(figure));
    let us = |figure| spread(figure).median;
    let note = format!(
        "hyper {:.0} us, through {program} {:.0}; gatewren {:.0} us, through {program} {:.0}; gatewren beyond hyper, \
         through {program} by without: {}",
        us(|m| m.hyper),
        us(|m| m.hyper_balanced),
        us(|m| m.ours),
        us(|m| m.ours_balanced),
        spread(|m| m.added()).words(),
    );
    Figure::of(key, spread(|m| m.ratio())).noted(note)
}

fn has_program(kind: BalancerKind) -> bool {
    Command::new(kind.program()).arg("-v").output().is_ok()
}
