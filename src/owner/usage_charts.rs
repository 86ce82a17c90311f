//! Charts from the usage history: of the host on the home page, and of a container on its own page.

use maud::{Markup, html};

use super::chart::{
    ChartPeriod, ChartPoint, TimeChart, bytes, bytes_per_second, percent, values_table,
};
use super::container_texts;
use super::home_texts as texts;
use super::site::OwnerSite;
use gatewren_base::sys::now_ms;
use gatewren_store::history::{MAX_POINTS, UsageHistory, UsageMetric, UsagePoint, UsageRange};

const HOUR_S: u64 = 3600;

/// A quarter more than a day: beyond a day the history reads its summaries of 15 minutes, which are fewer rows.
const DAY_S: u64 = 24 * HOUR_S + 900;

/// With fewer points of a day, the last hour shows more.
const MIN_POINTS: usize = 10;

/// The usage of the host or of a container in a period.
pub struct UsageView {
    points: Vec<UsagePoint>,
    /// The period.
    pub period: ChartPeriod,
}

/// The periods of the charts of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartSpan {
    /// An hour of minutes.
    Hour,
    /// A day.
    Day,
    /// A week.
    Week,
}

impl ChartSpan {
    /// All spans, the shortest first.
    pub const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Week];

    /// The span of a word; a day for another word.
    pub fn named(word: &str) -> Self {
        let known = Self::ALL.into_iter().find(|span| span.word() == word);
        known.unwrap_or(Self::Day)
    }

    /// The word in the query.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::Day => "24h",
            Self::Week => "7d",
        }
    }

    /// The name of its link.
    pub fn title(self) -> &'static str {
        match self {
            Self::Hour => container_texts::HOURS,
            Self::Day => container_texts::DAY,
            Self::Week => container_texts::WEEK,
        }
    }

    fn length_s(self) -> u64 {
        match self {
            Self::Hour => HOUR_S,
            Self::Day => DAY_S,
            Self::Week => 7 * 24 * HOUR_S,
        }
    }

    fn begin(self) -> &'static str {
        match self {
            Self::Hour => texts::LAST_HOUR,
            Self::Day => texts::LAST_DAY,
            Self::Week => container_texts::WEEK_AGO,
        }
    }
}

impl UsageView {
    /// Reads the last day, or the last hour while the history is shorter.
    pub async fn read_host(site: &OwnerSite) -> Self {
        let day = Self::read(site, ChartSpan::Day, UsageHistory::host).await;
        if day.points.len() >= MIN_POINTS {
            return day;
        }
        Self::read(site, ChartSpan::Hour, UsageHistory::host).await
    }

    /// Reads a period before now. An error is in the log of the sampler, and leaves the charts without points.
    async fn read<E>(
        site: &OwnerSite,
        span: ChartSpan,
        find: impl Fn(&UsageHistory, UsageRange) -> Result<Vec<UsagePoint>, E> + Send + 'static,
    ) -> Self {
        let now_s = now_ms() / 1000;
        let range = UsageRange {
            since_s: now_s.saturating_sub(span.length_s()),
            until_s: now_s,
            now_s,
            points: MAX_POINTS,
        };
        let history = site.host.history.clone();
        let read = move || find(&history, range).unwrap_or_default();
        let points = tokio::task::spawn_blocking(read).await.unwrap_or_default();
        let period = ChartPeriod {
            since_s: range.since_s,
            until_s: now_s,
            step_s: points.first().map_or(60, |point| point.length_s),
            begin: span.begin(),
        };
        Self { points, period }
    }

    /// The means of a metric.
    fn values(&self, metric: UsageMetric) -> Vec<ChartPoint> {
        let value = |point: &UsagePoint| {
            let at_s = point.from_s.saturating_add(point.length_s / 2);
            let value = point.mean.get(metric)?;
            Some(ChartPoint { at_s, value })
        };
        self.points.iter().filter_map(value).collect()
    }

    /// The charts, with the values at the top of those of CPU and memory.
    fn charts(&self, most_cpu: Option<f64>, most_memory: Option<f64>) -> Vec<TimeChart> {
        use UsageMetric::{CpuPercent, MemoryBytes, NetworkReceivedBytesS, NetworkSentBytesS};
        let rate = |metric, title| self.chart(metric, title, None, bytes_per_second);
        vec![
            self.chart(CpuPercent, texts::CPU, most_cpu, percent),
            self.chart(MemoryBytes, texts::MEMORY, most_memory, bytes),
            rate(NetworkReceivedBytesS, texts::RECEIVED),
            rate(NetworkSentBytesS, texts::SENT),
        ]
    }

    fn chart(
        &self,
        metric: UsageMetric,
        title: &'static str,
        most: Option<f64>,
        format: fn(f64) -> String,
    ) -> TimeChart {
        TimeChart {
            title,
            caption: self.last(metric).map(format).unwrap_or_default(),
            points: self.values(metric),
            most,
            format,
        }
    }

    /// The newest mean of a metric.
    fn last(&self, metric: UsageMetric) -> Option<f64> {
        self.values(metric).last().map(|point| point.value)
    }
}

/// Renders the charts of a container.
pub async fn container_charts(site: &OwnerSite, id: &str, span: ChartSpan) -> Markup {
    let id = id.to_owned();
    let find = move |history: &UsageHistory, range| history.container(&id, range);
    let view = UsageView::read(site, span, find).await;
    let charts = view.charts(None, None);
    html! {
        div class="charts" { @for chart in &charts { (chart.render(view.period)) } }
        (values_table("values", &charts, view.period))
    }
}

/// Renders the charts of the host.
pub async fn host_charts(site: &OwnerSite) -> Markup {
    let (view, now) = (UsageView::read_host(site).await, site.samples.newest());
    let limit = view.last(UsageMetric::MemoryLimitBytes);
    let mut charts = view.charts(Some(100.0), limit);
    charts.push(view.chart(UsageMetric::DiskPercent, texts::DISK, Some(100.0), percent));
    if let ([cpu, .., disk], Some(now)) = (charts.as_mut_slice(), now) {
        cpu.caption = percent(now.cpu);
        disk.caption = percent(now.disk);
    }
    html! {
        div class="charts" { @for chart in &charts { (chart.render(view.period)) } }
        (values_table("host-values", &charts, view.period))
    }
}

/// The period of the samples in memory.
pub fn last_hour() -> ChartPeriod {
    let now_s = now_ms() / 1000;
    ChartPeriod {
        since_s: now_s.saturating_sub(HOUR_S),
        until_s: now_s,
        step_s: 60,
        begin: texts::LAST_HOUR,
    }
}

/// Values of each minute until now.
pub fn minute_points(values: impl ExactSizeIterator<Item = f64>) -> Vec<ChartPoint> {
    let now_s = now_ms() / 1000;
    let minutes = (0_u64..).map(|minute| minute * 60);
    let first_s = now_s.saturating_sub(values.len() as u64 * 60);
    values
        .zip(minutes)
        .map(|(value, past_s)| ChartPoint {
            at_s: first_s + past_s,
            value,
        })
        .collect()
}
